//! Removes misleading tips from errors of a command line.

use clap::Error;
use clap::error::{ContextKind, ContextValue};
use strsim::osa_distance;

/// Two words are similar if at most one in this many characters differs.
const DIFFERENCE: usize = 3;
/// Minimum length of a part of a name that counts as similar, like `date` in `date-format`.
const MIN_PART: usize = 3;

/// Removes suggestions that aren't similar to the typed name, and the tip to pass an option as a value, because values rarely
/// begin with a hyphen.
#[must_use]
pub fn without_wrong_tips(mut error: Error) -> Error {
    // An error about an invalid value names its option.
    let typed = [ContextKind::InvalidValue, ContextKind::InvalidSubcommand, ContextKind::InvalidArg];
    let typed = typed.into_iter().find_map(|kind| text(error.get(kind)?)).unwrap_or_default();
    for kind in [ContextKind::SuggestedArg, ContextKind::SuggestedSubcommand, ContextKind::SuggestedValue] {
        let kept = match error.remove(kind) {
            Some(ContextValue::String(name)) => is_similar(&typed, &name).then_some(ContextValue::String(name)),
            Some(ContextValue::Strings(names)) => {
                let names: Vec<String> = names.into_iter().filter(|name| is_similar(&typed, name)).collect();
                (!names.is_empty()).then_some(ContextValue::Strings(names))
            }
            other => other,
        };
        kept.map(|kept| error.insert(kind, kept));
    }
    if let Some(ContextValue::StyledStrs(mut tips)) = error.remove(ContextKind::Suggested) {
        tips.retain(|tip| !tip.to_string().ends_with(&format!("-- {typed}'")));
        if !tips.is_empty() {
            error.insert(ContextKind::Suggested, ContextValue::StyledStrs(tips));
        }
    }
    error
}

fn text(value: &ContextValue) -> Option<String> {
    if let ContextValue::String(text) = value { Some(text.clone()) } else { None }
}

fn is_similar(typed: &str, name: &str) -> bool {
    let plain = |text: &str| text.trim_start_matches('-').split('=').next().unwrap_or_default().to_lowercase();
    let (typed, name) = (plain(typed), plain(name));
    let is_part = typed.chars().count() >= MIN_PART && name.contains(&typed);
    is_part || osa_distance(&typed, &name) <= (name.chars().count() / DIFFERENCE).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::{Arg, ArgAction, Command};

    fn tips(arguments: &[&str]) -> String {
        let option = |name: &'static str| Arg::new(name).long(name).action(ArgAction::Append);
        let import = Command::new("import")
            .arg(Arg::new("file"))
            .args(["map", "status", "date-format"].map(option))
            .arg(option("match").value_parser(["none", "serial_number"]));
        let tool = Command::new("tool").subcommand_required(true).subcommand(import).subcommand(Command::new("export"));
        let error = tool.try_get_matches_from(arguments).unwrap_err();
        let text = without_wrong_tips(error).to_string();
        text.lines().filter_map(|line| line.strip_prefix("  tip: ")).collect()
    }

    #[test]
    fn only_names_like_the_typed_one_are_tips() {
        for (arguments, tip) in [
            (&["tool", "import", "--foo"][..], ""),
            (&["tool", "import", "a.csv", "--tags"], ""),
            (&["tool", "import", "--state"], "a similar argument exists: '--status'"),
            (&["tool", "import", "-x"], ""),
            (&["tool", "import", "--mapp", "a=b"], "a similar argument exists: '--map'"),
            (&["tool", "import", "--date=x"], "a similar argument exists: '--date-format'"),
            (&["tool", "imprt"], "a similar subcommand exists: 'import'"),
            (&["tool", "import", "--match", "serial"], "a similar value exists: 'serial_number'"),
            (&["tool", "list"], ""),
        ] {
            assert_eq!(tips(arguments), tip, "{arguments:?}");
        }
    }
}
