//! The modules of a crate, the paths from one to another, and the circles among them. Tests of modules are left out: they may
//! use everything.

mod paths;

use paths::{Import, imports};
use std::collections::{BTreeMap, BTreeSet};

/// The path of a module below its crate; empty for the crate itself.
type Module = Vec<String>;

/// The code of a crate by its modules.
pub struct Crate {
    code: BTreeMap<Module, String>,
    /// The modules behind the names that a module re-exports.
    exports: BTreeMap<(Module, String), Vec<String>>,
}

impl Crate {
    /// From files by their paths below the folder of `lib.rs` or `main.rs`.
    pub fn new(files: impl IntoIterator<Item = (String, String)>) -> Self {
        let mut code: BTreeMap<Module, String> = BTreeMap::new();
        for (path, text) in files {
            let parts = path.trim_end_matches(".rs").split('/').filter(|part| !["lib", "main", "mod"].contains(part));
            code.entry(parts.map(str::to_owned).collect())
                .or_default()
                .push_str(text.split(UNIT_TESTS).next().unwrap_or_default());
        }
        let tests: Vec<Module> = code.iter().flat_map(|(module, text)| test_modules(module, text)).collect();
        code.retain(|module, _| !tests.iter().any(|tests| module.starts_with(tests)));
        let mut graph = Self { code, exports: BTreeMap::new() };
        let exports = graph.code.iter().flat_map(|(module, text)| {
            let exported = imports(text).into_iter().filter(|import| import.is_export);
            exported.filter_map(|import| Some(((module.clone(), import.path.last()?.clone()), graph.absolute(module, &import)?)))
        });
        graph.exports = exports.collect();
        graph
    }

    pub fn len(&self) -> usize {
        self.code.len()
    }

    fn has(&self, module: &[String]) -> bool {
        self.code.keys().any(|known| known.starts_with(module))
    }

    /// The path below the crate; `None` for one into another crate.
    fn absolute(&self, module: &[String], import: &Import) -> Option<Vec<String>> {
        let first = import.path.first()?;
        let (mut base, mut rest) = (module.to_vec(), import.path.as_slice());
        match first.as_str() {
            "crate" => (base, rest) = (Vec::new(), rest.get(1..)?),
            "super" | "self" => {}
            child => {
                base.push(child.to_owned());
                return self.code.contains_key(&base).then(|| [module, rest].concat());
            }
        }
        while let Some(step) = rest.first().filter(|step| ["super", "self"].contains(&step.as_str())) {
            if step == "super" {
                base.pop();
            }
            rest = rest.get(1..)?;
        }
        Some([base.as_slice(), rest].concat())
    }

    /// The module that has what a path names, behind any re-exports.
    fn module_of(&self, path: &[String], depth: usize) -> Module {
        let known = (0..=path.len()).rev().filter_map(|length| path.get(..length)).find(|module| self.has(module));
        let (module, rest) = path.split_at(known.map_or(0, <[String]>::len));
        let exported = rest.first().and_then(|name| self.exports.get(&(module.to_vec(), name.clone())));
        match exported {
            Some(path) if depth > 0 => self.module_of(&[path.as_slice(), rest.get(1..).unwrap_or_default()].concat(), depth - 1),
            _ => module.to_vec(),
        }
    }

    /// Pairs of modules of which the first uses the second.
    fn uses(&self) -> Vec<(&Module, Module)> {
        let uses = self.code.iter().flat_map(|(module, text)| {
            let targets = imports(text).into_iter().filter_map(|import| self.absolute(module, &import));
            targets.map(move |path| (module, self.module_of(&path, MAX_EXPORTS)))
        });
        uses.collect()
    }

    /// Modules that lie side by side and use one another in a circle, themselves or through the modules in them.
    pub fn circles(&self) -> Vec<Vec<String>> {
        let uses = self.uses();
        let parents: BTreeSet<&[String]> =
            self.code.keys().flat_map(|module| (0..module.len()).map(|length| &module[..length])).collect();
        let siblings = |parent: &[String], (from, to): &(&Module, Module)| {
            let child = |module: &[String]| module.starts_with(parent).then(|| module.get(parent.len()).cloned()).flatten();
            child(from).zip(child(to)).filter(|(from, to)| from != to)
        };
        let circles = parents.into_iter().map(|parent| {
            let circle = in_circles(uses.iter().filter_map(|used| siblings(parent, used)).collect());
            circle.into_iter().map(|name| [parent, &[name]].concat().join("::")).collect::<Vec<_>>()
        });
        circles.filter(|circle| !circle.is_empty()).collect()
    }
}

/// Begins the tests at the end of a file.
const UNIT_TESTS: &str = "#[cfg(test)]\nmod tests {";
/// Longer chains of re-exports are circles themselves.
const MAX_EXPORTS: usize = 8;

/// The modules that are compiled for tests only.
fn test_modules(module: &[String], text: &str) -> Vec<Module> {
    let declarations = text.split("#[cfg(test)]\n").skip(1).filter_map(|rest| rest.lines().next()?.strip_suffix(';'));
    let names = declarations.filter_map(|line| line.split_once("mod ").map(|(_, name)| name.to_owned()));
    names.map(|name| [module, &[name]].concat()).collect()
}

/// Without those that only lead to a circle, or away from one.
fn in_circles(mut uses: BTreeSet<(String, String)>) -> BTreeSet<String> {
    loop {
        let (from, to): (BTreeSet<String>, BTreeSet<String>) = uses.iter().cloned().unzip();
        let before = uses.len();
        uses.retain(|(user, used)| to.contains(user) && from.contains(used));
        if uses.len() == before {
            return from;
        }
    }
}
