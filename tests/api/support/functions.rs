//! The functions as template.yaml deploys them: each with its own routes only.

use super::document::BASE;
use axum::Router;
use shared::app::App;
use shared::store::Store;
use std::collections::BTreeSet;
use std::sync::LazyLock;
use utoipa::openapi::OpenApi;
use yaml_serde::Value;

pub struct Function {
    /// The package, the binary and the folder in `functions/`.
    pub package: &'static str,
    /// The name in template.yaml, before `Function` and `Role`.
    pub resource: &'static str,
    pub description: fn() -> OpenApi,
    pub routes: fn() -> Router<App>,
}

const fn function(
    package: &'static str,
    resource: &'static str,
    description: fn() -> OpenApi,
    routes: fn() -> Router<App>,
) -> Function {
    Function { package, resource, description, routes }
}

/// Every function. A test compares them with the folder.
pub const FUNCTIONS: [Function; 8] = [
    function("assets", "Assets", assets::description, assets::routes),
    function("processes", "Processes", processes::description, processes::routes),
    function("users", "Users", users::description, users::routes),
    function("catalog", "Catalog", catalog::description, catalog::routes),
    function("account", "Account", account::description, account::routes),
    function("sign", "Sign", sign::description, sign::routes),
    function("webhooks", "Webhooks", webhooks::description, webhooks::routes),
    function("meta", "Meta", meta::description, meta::all_routes),
];

/// A function that serves no requests.
pub struct Background {
    pub package: &'static str,
    /// The name in template.yaml, before `Function` and `Role`.
    pub resource: &'static str,
}

/// The functions that serve no requests: one runs on a schedule, one when the table's stream has events, one when the queue has
/// messages.
pub const BACKGROUND: [Background; 3] = [
    Background { package: "snapshots", resource: "Snapshots" },
    Background { package: "fanout", resource: "Fanout" },
    Background { package: "deliver", resource: "Deliver" },
];

/// Names in template.yaml, before `Function` and `Role`.
pub fn resources() -> impl Iterator<Item = &'static str> {
    FUNCTIONS.iter().map(|function| function.resource).chain(BACKGROUND.iter().map(|function| function.resource))
}

impl Function {
    pub fn named(package: &str) -> &'static Self {
        FUNCTIONS.iter().find(|function| function.package == package).unwrap_or_else(|| panic!("no function {package}"))
    }

    pub fn router(&self, store: Store) -> Router {
        shared::http::service((self.routes)(), App::new(store))
    }

    /// Methods and paths, with HEAD for every GET.
    pub fn operations(&self) -> BTreeSet<(&'static str, String)> {
        let mut operations = BTreeSet::new();
        for (path, item) in (self.description)().paths.paths {
            let path = format!("{BASE}{path}");
            let methods = [
                ("GET", item.get.is_some()),
                ("HEAD", item.get.is_some()),
                ("POST", item.post.is_some()),
                ("PATCH", item.patch.is_some()),
                ("DELETE", item.delete.is_some()),
                ("PUT", item.put.is_some()),
            ];
            operations.extend(methods.into_iter().filter(|(_, exists)| *exists).map(|(name, _)| (name, path.clone())));
        }
        operations
    }
}

pub fn resource(name: &str) -> Value {
    template()["Resources"].get(name).unwrap_or_else(|| panic!("template.yaml has no {name}")).clone()
}

pub fn variables_of_all() -> &'static Value {
    &template()["Globals"]["Function"]["Environment"]["Variables"]
}

/// Parsed once, because that is slow in a debug build.
fn template() -> &'static Value {
    static TEMPLATE: LazyLock<Value> = LazyLock::new(|| yaml_serde::from_str(dev_server::table::TEMPLATE).unwrap());
    &TEMPLATE
}

#[test]
fn every_folder_in_functions_is_a_function_of_the_template() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../functions");
    let folders = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let background = || BACKGROUND.iter().map(|function| (function.package, function.resource));
    let names = || FUNCTIONS.iter().map(|function| (function.package, function.resource)).chain(background());
    let known: BTreeSet<String> = names().map(|(package, _)| package.to_owned()).collect();
    assert_eq!(folders.collect::<BTreeSet<_>>(), known);
    let of_type = |(name, resource): (&Value, &Value)| {
        (resource["Type"] == "AWS::Serverless::Function").then(|| name.as_str().unwrap().to_owned())
    };
    let declared: BTreeSet<String> = template()["Resources"].as_mapping().unwrap().iter().filter_map(of_type).collect();
    assert_eq!(declared, names().map(|(_, resource)| format!("{resource}Function")).collect());
    for (package, resource_name) in names() {
        let declared = resource(&format!("{resource_name}Function"));
        assert_eq!(declared["Properties"]["CodeUri"], format!("functions/{package}"));
        assert_eq!(declared["Metadata"]["BuildMethod"], "rust-cargolambda");
        assert_eq!(declared["Metadata"]["BuildProperties"]["Binary"], package);
    }
}
