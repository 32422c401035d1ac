//! Modules that lie side by side use one another in no circle, in no crate of the workspace. A `mod.rs`, `lib.rs` or `main.rs`
//! holds its folder together and is no part of a circle among the modules in it.

mod module_graph;
mod source_files;

use module_graph::Crate;
use source_files::files;
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

#[test]
fn modules_use_one_another_in_no_circle() {
    let sources = files(&Path::new(env!("CARGO_MANIFEST_DIR")).join(".."));
    let sources: Vec<_> = sources.iter().filter(|path| path.extension().is_some_and(|extension| extension == "rs")).collect();
    let is_root = |path: &Path| path.ends_with("lib.rs") || path.ends_with("main.rs");
    let roots: BTreeSet<&Path> = sources.iter().filter(|path| is_root(path)).filter_map(|path| path.parent()).collect();
    assert!(roots.len() >= 25, "only {} crates were found", roots.len());
    let mut modules = 0;
    for root in roots {
        let own = sources.iter().filter_map(|path| Some((path.strip_prefix(root).ok()?.to_str()?.to_owned(), path)));
        let graph = Crate::new(own.map(|(name, path)| (name, fs::read_to_string(path).expect("a source file"))));
        modules += graph.len();
        let circles = graph.circles();
        assert!(circles.is_empty(), "{} has circles among {circles:?}", root.display());
    }
    assert!(modules >= 600, "only {modules} modules were found");
}

fn circles_of(files: &[(&str, &str)]) -> Vec<Vec<String>> {
    Crate::new(files.iter().map(|(path, text)| ((*path).to_owned(), (*text).to_owned()))).circles()
}

#[test]
fn a_circle_is_found_however_its_paths_are_written() {
    for (a, b) in [
        ("use crate::b::B;", "use crate::a::A;"),
        ("use super::{b::{self, B}, c};", "use super::a::A;"),
        ("pub(crate) use crate::{\n    c::C,\n    b::B,\n};", "fn f() -> super::a::A {}"),
        ("fn f(c: super::super::x::c::C) {}", "use super::c::A;"),
    ] {
        let others = [
            ("lib.rs", "pub mod x;"),
            ("x/mod.rs", "mod a;\nmod b;\nmod c;"),
            ("x/c.rs", "use super::b::B;\npub use super::a::A;"),
        ];
        let (a, b) = (a.replace("crate::", "crate::x::"), b.replace("crate::", "crate::x::"));
        let circles = circles_of(&[others.as_slice(), &[("x/a.rs", &a), ("x/b.rs", &b)]].concat());
        assert!(circles.iter().any(|circle| circle.contains(&"x::a".to_owned())), "{a} {b}: {circles:?}");
    }
}

#[test]
fn a_circle_through_what_a_parent_re_exports_and_through_deeper_modules_is_found() {
    let files = [
        ("lib.rs", "mod a;\nmod b;\npub use a::deep::A;"),
        ("a/mod.rs", "pub mod deep;"),
        ("a/deep.rs", "use crate::b::inner::B;"),
        ("b/mod.rs", "pub mod inner;"),
        ("b/inner.rs", "use crate::A;"),
    ];
    assert_eq!(circles_of(&files), [["a", "b"]]);
}

#[test]
fn a_parent_and_tests_are_no_part_of_a_circle() {
    let files = [
        ("lib.rs", "mod a;\nmod b;\n#[cfg(test)]\nmod samples;\npub use b::B;\npub struct Whole(a::A);"),
        ("a.rs", "use crate::{B, Whole};"),
        ("b.rs", "struct B;\n#[cfg(test)]\nmod tests {\n    use crate::a::A;\n}"),
        ("samples.rs", "use crate::a::A;"),
        ("c.rs", "use crate::a::A; // crate::d::D"),
        ("d.rs", "use crate::c::C;"),
    ];
    assert_eq!(circles_of(&files), Vec::<Vec<String>>::new());
}
