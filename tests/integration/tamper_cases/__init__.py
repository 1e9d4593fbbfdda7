"""Small repositories, each changed in one way: gamed ones that have to be found, honest ones that may not be accused."""
