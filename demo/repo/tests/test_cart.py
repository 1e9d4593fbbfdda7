from shop.cart import Line, discount, subtotal, total

TEA = Line("tea", 450)
CUPS = Line("cup", 799, quantity=4)


def test_empty_cart_costs_nothing():
    assert total([]) == 0


def test_single_article_costs_its_price():
    assert subtotal([TEA]) == 450


def test_quantity_counts():
    assert subtotal([CUPS]) == 3196


def test_lines_add_up():
    assert subtotal([TEA, CUPS]) == 3646


def test_discount_rounds_in_the_customers_favour():
    assert discount(999, 15) == 150


def test_total_takes_the_discount_off():
    assert total([TEA, CUPS], percent=15) == 3099
