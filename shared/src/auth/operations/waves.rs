//! The order of operations that touch the same things.

use std::collections::{BTreeSet, HashMap};

/// Divides operations into waves: those of a wave have nothing to do with each other. Operations that share a subject are
/// in different waves, in their order, and so are those that are connected through the subjects of others: a change of an
/// e-mail address, for one, frees it for operations that don't name the user.
pub(super) fn waves(subjects: &[Vec<String>]) -> Vec<Vec<usize>> {
    // The group of each subject. Groups that turn out to be connected become one.
    let mut group_of: HashMap<&str, usize> = HashMap::new();
    let mut groups: Vec<Vec<usize>> = Vec::new();
    for (index, subjects) in subjects.iter().enumerate() {
        let own = groups.len();
        let mut members = vec![index];
        let connected: BTreeSet<usize> = subjects.iter().filter_map(|subject| group_of.get(subject.as_str())).copied().collect();
        for group in &connected {
            members.append(&mut groups[*group]);
        }
        groups.push(members);
        group_of.values_mut().filter(|group| connected.contains(group)).for_each(|group| *group = own);
        group_of.extend(subjects.iter().map(|subject| (subject.as_str(), own)));
    }
    let mut waves: Vec<Vec<usize>> = Vec::new();
    for mut group in groups {
        group.sort_unstable();
        for (wave, index) in group.into_iter().enumerate() {
            if waves.len() <= wave {
                waves.push(Vec::new());
            }
            waves[wave].push(index);
        }
    }
    waves.iter_mut().for_each(|wave| wave.sort_unstable());
    waves
}

#[cfg(test)]
mod tests {
    use super::waves;

    #[test]
    fn operations_on_the_same_thing_keep_their_order() {
        let subjects = |names: &[&[&str]]| -> Vec<Vec<String>> {
            names.iter().map(|names| names.iter().map(|name| (*name).to_owned()).collect()).collect()
        };
        assert_eq!(waves(&subjects(&[&[], &[], &["a"], &["b"]])), [[0, 1, 2, 3]]);
        assert_eq!(waves(&subjects(&[&["a"], &["b"], &["a", "b"], &["b"], &[]])), [vec![0, 4], vec![1], vec![2], vec![3]]);
        let connected = subjects(&[&["ada", "x", "y"], &["ada", "y", "z"], &["y"], &["w"]]);
        assert_eq!(waves(&connected), [vec![0, 3], vec![1], vec![2]]);
        assert!(waves(&[]).is_empty());
    }
}
