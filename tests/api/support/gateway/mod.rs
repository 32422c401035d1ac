//! API Gateway as template.yaml declares it: the function of each request.

pub mod deployed;

use super::functions::{FUNCTIONS, Function, resource};

pub struct Route {
    /// As the gateway writes it: `ANY /v1/assets/{proxy+}`, or `$default`.
    pub key: String,
    pub function: &'static Function,
}

pub fn routes() -> Vec<Route> {
    let routes = |function: &'static Function| {
        let events = resource(&format!("{}Function", function.resource))["Properties"]["Events"].clone();
        let keys = events.as_mapping().unwrap().iter().map(|(_, event)| {
            assert_eq!((&event["Type"], event["Properties"].get("Auth")), (&"HttpApi".into(), None), "{}", function.package);
            let text = |name: &str| event["Properties"].get(name).and_then(|value| value.as_str());
            text("Path").map_or_else(|| "$default".to_owned(), |path| format!("{} {path}", text("Method").unwrap()))
        });
        keys.map(|key| Route { key, function }).collect::<Vec<_>>()
    };
    FUNCTIONS.iter().flat_map(routes).collect()
}

/// The most specific one, `$default` last ("Create routes for HTTP APIs" in the guide of API Gateway).
pub fn select<'a>(routes: &'a [Route], method: &str, path: &str) -> &'a Route {
    let candidates = routes.iter().filter_map(|route| Some((specificity(&route.key, method, path)?, route)));
    candidates.max_by_key(|(specificity, _)| *specificity).unwrap().1
}

/// For a route that takes the request: not `$default`, a fixed number of parts, the number of fixed parts, a fixed method.
fn specificity(key: &str, method: &str, path: &str) -> Option<(bool, bool, usize, bool)> {
    let Some((known, template)) = key.split_once(' ') else { return Some((false, false, 0, false)) };
    let parts = template.split('/').filter(|part| *part != "{proxy+}");
    let (parts, is_greedy): (Vec<&str>, bool) = (parts.collect(), template.ends_with("{proxy+}"));
    let mut rest = path.split('/');
    let is_start = parts.iter().all(|part| rest.next().is_some_and(|given| given == *part || part.starts_with('{')));
    let is_end = if is_greedy { rest.next().is_some_and(|part| !part.is_empty()) } else { rest.next().is_none() };
    let fixed = parts.iter().filter(|part| !part.starts_with('{')).count();
    ([method, "ANY"].contains(&known) && is_start && is_end).then_some((true, !is_greedy, fixed, known == method))
}

#[test]
fn the_most_specific_route_is_selected() {
    let route = |key: &str| Route { key: key.to_owned(), function: &FUNCTIONS[0] };
    let routes = ["$default", "ANY /a", "ANY /a/{proxy+}", "ANY /a/{id}/c", "GET /a/{id}/c", "ANY /a/b/{proxy+}"].map(route);
    for (method, path, expected) in [
        ("GET", "/a", "ANY /a"),
        ("GET", "/a/", "$default"),
        ("GET", "/a/x", "ANY /a/{proxy+}"),
        ("GET", "/a/x/c", "GET /a/{id}/c"),
        ("POST", "/a/x/c", "ANY /a/{id}/c"),
        ("POST", "/a/x/c/d", "ANY /a/{proxy+}"),
        ("GET", "/a/b/d", "ANY /a/b/{proxy+}"),
        ("GET", "/b", "$default"),
    ] {
        assert_eq!(select(&routes, method, path).key, expected, "{method} {path}");
    }
}
