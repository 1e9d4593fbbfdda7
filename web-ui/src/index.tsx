// The page that the host's dashboard shows under its Matrix tab.
import { Link } from "./Link";
import { RunList } from "./RunList";
import { RunView } from "./RunView";
import { Routing } from "./Routing";
import { React } from "./sdk";
import type { Element } from "./sdk";
import { Settings } from "./Settings";
import { usePlace } from "./where";

function Page(): Element {
  const place = usePlace();
  return (
    <div className="mc">
      <nav className="mc-nav" aria-label="Matrix Coder">
        <Link to={{ view: "runs" }} current={place.view === "runs" || place.view === "run"}>
          Runs
        </Link>
        <Link to={{ view: "routing" }} current={place.view === "routing"}>
          Routing
        </Link>
        <Link to={{ view: "settings" }} current={place.view === "settings"}>
          Settings
        </Link>
      </nav>
      {place.view === "runs" && <RunList />}
      {place.view === "run" && <RunView key={place.id} id={place.id} tab={place.tab} />}
      {place.view === "routing" && <Routing />}
      {place.view === "settings" && <Settings />}
    </div>
  );
}

window.__HERMES_PLUGINS__.register("matrix_coder", Page);
