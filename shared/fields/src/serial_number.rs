//! Serial numbers that name no device.

/// Entries of people, and of firmware that nobody filled in, without spaces and punctuation (`dmidecode` and Intune show the
/// latter).
const PLACEHOLDERS: &str = "na none null nil no unknown unbekannt keine kein ohne tbd todo missing notavailable notapplicable notspecified \
    noserial noserialnumber serialnumber defaultstring systemserialnumber chassisserialnumber tobefilledbyoem so ka nv keineangabe \
    nichtvorhanden nichtbekannt entfällt sans sansobjet aucun inconnu néant sinnúmero desconocido ninguno";

/// Whether it stands for a serial number that nobody knows, such as `n/a`, `-`, `0` or `To Be Filled By O.E.M.`
#[must_use]
pub fn is_placeholder(serial: &str) -> bool {
    let bare: String = serial.to_lowercase().chars().filter(|c| c.is_alphanumeric()).collect();
    let mut chars = bare.chars();
    let first = chars.next();
    let repeats_zero_or_x = first.is_some_and(|first| "0x".contains(first) && chars.all(|c| c == first));
    bare.is_empty() || repeats_zero_or_x || PLACEHOLDERS.split(' ').any(|placeholder| placeholder == bare)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn placeholders_are_recognized_however_they_are_written() {
        for text in
            ["n/a", "N.A.", "none", "Unknown", "-", "--", "?", "0", "0000", "xxx", "To Be Filled By O.E.M.", "Default string"]
        {
            assert!(is_placeholder(text), "{text}");
        }
        for text in ["S1", "PF3XK201", "0001", "X1", "NA-4711", "123456789", "none1", "Ω7"] {
            assert!(!is_placeholder(text), "{text}");
        }
    }
}
