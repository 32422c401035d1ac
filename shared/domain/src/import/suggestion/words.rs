//! Words for the values of fields with a fixed vocabulary, in English, German, French and Spanish.

use fields::compared::lower;
use strsim::osa_distance;

/// Fields, their values, and the words for each value, separated by commas, in lower case and without punctuation. Ambiguous
/// words are left out: "in service" can mean a repair or normal use.
const WORDS: &[(&str, &str, &str)] = &[
    (
        "status",
        "in_stock",
        "in stock,stock,available,free,spare,stored,storage,in storage,unassigned,ready to deploy,lager,auf lager,im lager,eingelagert,verfügbar,\
         frei,vorrat,reserve,en stock,disponible,réserve,libre,en almacén,almacén,reserva",
    ),
    (
        "status",
        "preparing",
        "preparation,in preparation,staging,provisioning,being set up,vorbereitung,in vorbereitung,wird vorbereitet,einrichtung,\
         in einrichtung,préparation,en préparation,preparación,en preparación",
    ),
    (
        "status",
        "in_use",
        "used,active,deployed,assigned,checked out,issued,in operation,in benutzung,in nutzung,im einsatz,in gebrauch,in betrieb,benutzt,\
         genutzt,aktiv,ausgegeben,vergeben,zugewiesen,utilisé,en utilisation,en service,attribué,affecté,actif,en uso,en servicio,asignado,entregado,activo",
    ),
    (
        "status",
        "in_service",
        "repair,in repair,being repaired,out for repair,maintenance,in maintenance,broken,defective,reparatur,in reparatur,zur reparatur,\
         wartung,in wartung,defekt,kaputt,réparation,en réparation,en maintenance,en panne,reparación,en reparación,averiado,\
         mantenimiento,en mantenimiento",
    ),
    (
        "status",
        "returned",
        "return,given back,handed back,zurück,zurückgegeben,rückgabe,rückläufer,retour,retourné,rendu,restitué,devuelto",
    ),
    (
        "status",
        "scrapped",
        "retired,disposed,disposed of,discarded,decommissioned,recycled,written off,end of life,verschrottet,ausgemustert,entsorgt,\
         abgeschrieben,ausgesondert,stillgelegt,rebut,mis au rebut,réformé,déclassé,mis hors service,desechado,retirado,descartado,\
         dado de baja,de baja",
    ),
    ("role", "viewer", "reader,read only,leser,lesend,lecteur,lector"),
    ("role", "helpdesk", "help desk,service desk,support,first level,1st level"),
    ("role", "technician", "techniker,technicien,technicienne,técnico,técnica"),
    ("role", "admin", "administrator,administrateur,administratrice,administrador,administradora"),
    ("is_active", "true", "yes,y,1,x,active,enabled,ja,j,wahr,aktiv,oui,o,vrai,actif,sí,si,s,verdadero,activo"),
    ("is_active", "false", "no,n,0,inactive,disabled,nein,falsch,inaktiv,deaktiviert,gesperrt,non,faux,inactif,falso,inactivo"),
];

/// Returns the values of a field with a fixed vocabulary; none for other fields.
pub fn known(field: &str) -> impl Iterator<Item = &'static str> {
    WORDS.iter().filter(move |(known, ..)| *known == field).map(|(_, value, _)| *value)
}

/// Returns the words for the values of a field, each with the value.
fn candidates(field: &str) -> impl Iterator<Item = (&'static str, String)> {
    let of_field = WORDS.iter().filter(move |(known, ..)| *known == field);
    of_field.flat_map(|(_, value, words)| {
        std::iter::once(spaced(value)).chain(words.split(',').map(str::to_owned)).map(|word| (*value, word))
    })
}

/// Returns the value that a word means exactly.
pub fn meaning(field: &str, word: &str) -> Option<&'static str> {
    let word = spaced(word);
    candidates(field).find(|(_, candidate)| *candidate == word).map(|(value, _)| value)
}

/// Finds the value for a word: the one that it means, or the only one with a similar word.
pub fn guess(field: &str, word: &str) -> Option<&'static str> {
    if let Some(value) = meaning(field, word) {
        return Some(value);
    }
    let word = spaced(word);
    let tolerance = match word.chars().count() {
        0..=4 | 40.. => return None,
        5..=8 => 1,
        _ => 2,
    };
    let near: Vec<(usize, &str)> = candidates(field).map(|(value, candidate)| (osa_distance(&word, &candidate), value)).collect();
    let (least, value) = near.iter().copied().min().filter(|(least, _)| *least <= tolerance)?;
    near.iter().all(|(distance, other)| *distance > least || *other == value).then_some(value)
}

/// Converts to lower case, with single spaces instead of punctuation.
fn spaced(text: &str) -> String {
    let lower = lower(text);
    lower.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::assets::asset::Status;
    use crate::keys::api_key::Role;

    #[test]
    fn words_have_the_values_of_the_service() {
        assert!(known("status").eq(Status::ALL.iter().map(|status| status.as_str())));
        assert!(known("role").eq(Role::ALL.iter().map(|role| role.as_str())));
        assert!(known("is_active").eq(["true", "false"]) && known("name").next().is_none());
    }

    #[test]
    fn words_and_slips_of_the_pen_have_a_meaning() {
        for (field, word, meaning) in [
            ("status", "Auf Lager", "in_stock"),
            ("status", "In Storage", "in_stock"),
            ("status", " LAGER ", "in_stock"),
            ("status", "In-Use", "in_use"),
            ("status", "im Einsatz", "in_use"),
            ("status", "ausgemusert", "scrapped"),
            ("status", "Zuru\u{308}ckgegeben", "returned"),
            ("status", "en réparation", "in_service"),
            ("status", "en service", "in_use"),
            ("status", "Dado de baja", "scrapped"),
            ("role", "Administratorr", "admin"),
            ("is_active", "Ja", "true"),
        ] {
            assert_eq!(guess(field, word), Some(meaning), "{word}");
        }
        for (field, word) in [("status", "verkauft"), ("status", ""), ("status", "?"), ("is_active", "jein"), ("name", "yes")] {
            assert_eq!(guess(field, word), None, "{word}");
        }
    }

    #[test]
    fn no_word_means_two_values() {
        let words: Vec<(&str, &str)> =
            WORDS.iter().flat_map(|(field, _, words)| words.split(',').map(move |word| (*field, word))).collect();
        let distinct: std::collections::HashSet<_> = words.iter().collect();
        assert_eq!(words.len(), distinct.len());
        assert!(words.iter().all(|(_, word)| spaced(word) == *word));
    }
}
