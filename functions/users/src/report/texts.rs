//! The texts of printed reports in each language.

use super::views::KeptData;

shared::texts! {
    report_for: "Report for", "Auskunft für", "Rapport pour", "Informe para";
    one_part:
        "This is part of a longer report, and covers only the data in this part.",
        "Das ist ein Teil einer längeren Auskunft. Er sagt nur, was in diesem Teil steht.",
        "Ceci est une partie d’un rapport plus long, qui ne dit que ce qu’elle contient.",
        "Esto es una parte de un informe más largo, y solo dice lo que hay en ella.";
    next_part:
        "The next part starts with",
        "Der nächste Teil beginnt mit",
        "La partie suivante commence par",
        "La parte siguiente empieza con";
    what_we_hold:
        "What we hold about you",
        "Was wir über Sie gespeichert haben",
        "Ce que nous conservons sur vous",
        "Lo que guardamos sobre usted";
    your_name: "Your name is", "Ihr Name ist", "Votre nom est", "Su nombre es";
    your_email: "your e-mail address", "Ihre E-Mail-Adresse", "votre adresse e-mail", "su dirección de correo";
    your_role: "your role", "Ihre Rolle", "votre rôle", "su rol";
    held_since: "We have held this since", "Das ist gespeichert seit", "Nous conservons cela depuis le", "Lo guardamos desde el";
    changed_on: " and last changed it on", ", zuletzt geändert am", " ; dernière modification le", "; último cambio el";
    inactive:
        "You are inactive: no device can be assigned to you.",
        "Sie sind inaktiv: Ihnen kann kein Gerät zugewiesen werden.",
        "Vous êtes inactif : aucun appareil ne peut vous être attribué.",
        "Su usuario está inactivo: no se le puede asignar ningún dispositivo.";
    deleted:
        "Your user was deleted. Histories still contain entries about you.",
        "Ihr Benutzer wurde gelöscht. Verläufe haben noch Einträge über Sie.",
        "Votre fiche a été supprimée. Les historiques ont encore des entrées sur vous.",
        "Su usuario fue eliminado. Los historiales aún tienen entradas sobre usted.";
    erased_on:
        "Your data was erased on",
        "Ihre Daten wurden gelöscht am",
        "Vos données ont été effacées le",
        "Sus datos se borraron el";
    pseudonyms:
        "A pseudonym replaces names, texts and signatures; times and IDs remain.",
        "An der Stelle von Namen, Texten und Unterschriften steht ein Pseudonym; Zeiten und IDs bleiben.",
        "Un pseudonyme remplace les noms, les textes et les signatures ; les heures et les ID restent.",
        "Un seudónimo sustituye nombres, textos y firmas; las horas y los ID se quedan.";
    we_hold: "We also hold:", "Außerdem ist gespeichert:", "Nous conservons aussi :", "También guardamos:";
    held_assets:
        "your current and former devices, with dates",
        "welche Geräte Sie haben und hatten, von wann bis wann",
        "quels appareils vous avez et avez eus, et de quand à quand",
        "qué dispositivos tiene y ha tenido, y de cuándo a cuándo";
    held_processes:
        "handovers, returns and other processes that you took part in, with what you signed and what was written about you",
        "Übergaben, Rückgaben und andere Prozesse, an denen Sie beteiligt waren, mit Ihren Unterschriften und dem, was über Sie \
         geschrieben wurde",
        "les remises, les restitutions et les autres processus auxquels vous avez participé, avec ce que vous avez signé et ce \
         qui a été écrit sur vous",
        "entregas, devoluciones y otros procesos en los que participó, con lo que firmó y lo que se escribió sobre usted";
    held_movements:
        "processes that you started on several devices",
        "Prozesse mit mehreren Geräten, die Sie begonnen haben",
        "les processus sur plusieurs appareils que vous avez démarrés",
        "procesos con varios dispositivos que usted inició";
    held_links:
        "links for you to sign, with your name and e-mail address",
        "Links, mit denen Sie unterschreiben konnten, mit Name und E-Mail-Adresse",
        "les liens pour signer, avec votre nom et votre adresse e-mail",
        "enlaces para firmar, con su nombre y su dirección de correo";
    held_keys:
        "API keys that are bound to you",
        "API-Schlüssel, die an Sie gebunden sind",
        "les clés d’API qui vous sont liées",
        "claves de API vinculadas a usted";
    held_entries:
        "history entries that name you or that you caused",
        "Einträge in Verläufen, die Sie nennen oder die Sie verursacht haben",
        "les entrées d’historiques qui vous nomment ou que vous avez causées",
        "entradas de historiales que lo nombran o que usted causó";
    how_long:
        "We keep all of this to show who has which device and who changed what. There is no time limit: we keep it until your \
         data is erased. The annex lists all of it.",
        "All das zeigt, wer welches Gerät hat und wer was geändert hat. Es wird ohne Frist aufbewahrt, bis Ihre Daten gelöscht \
         werden. Der Anhang enthält alles.",
        "Tout cela montre qui a quel appareil et qui a modifié quoi. C’est conservé sans limite, jusqu’à l’effacement de vos \
         données. L’annexe contient tout.",
        "Todo esto muestra quién tiene qué dispositivo y quién cambió qué. Se guarda sin límite, hasta que se borren sus datos. \
         El anexo lo contiene todo.";
    what_you_have: "What you have now", "Was Sie jetzt haben", "Ce que vous avez maintenant", "Lo que tiene ahora";
    since: "since", "seit", "depuis le", "desde el";
    place: "location:", "Ort:", "lieu :", "lugar:";
    nothing:
        "No device is assigned to you.",
        "Ihnen ist kein Gerät zugewiesen.",
        "Aucun appareil ne vous est attribué.",
        "No tiene ningún dispositivo asignado.";
    what_you_received:
        "What you received and gave back",
        "Was Sie erhalten und zurückgegeben haben",
        "Ce que vous avez reçu et rendu",
        "Lo que recibió y devolvió";
    /// `{}` stands for the assets, here and in the next four texts.
    received: "You received {}", "Sie haben {} erhalten", "Vous avez reçu {}", "Usted recibió {}";
    given_back: "You gave back {}", "Sie haben {} zurückgegeben", "Vous avez rendu {}", "Usted devolvió {}";
    assigned: "{} was assigned to you", "{} wurde Ihnen zugewiesen", "{} vous a été attribué", "Se le asignó {}";
    unassigned:
        "The assignment of {} to you ended",
        "Die Zuweisung von {} an Sie endete",
        "Fin de l’attribution de {}",
        "Terminó la asignación de {}";
    not_completed: "Not completed yet: {}", "Noch nicht abgeschlossen: {}", "Pas encore terminé : {}", "Aún sin completar: {}";
    handed_over_by: "handed over by", "übergeben von", "remis par", "entregado por";
    taken_back_by: "taken back by", "zurückgenommen von", "repris par", "recogido por";
    by: "by", "von", "par", "por";
    signature: "Signature", "Unterschrift", "Signature", "Firma";
    image: "image", "Bild", "image", "imagen";
    above: "see above", "siehe oben", "voir plus haut", "véase arriba";
    too_large:
        "The image doesn’t fit on this page with the others:",
        "Neben den anderen zu groß für diese Seite:",
        "Trop grande pour cette page à côté des autres :",
        "Demasiado grande para esta página junto a las demás:";
    kept_elsewhere:
        "Data kept elsewhere",
        "Was anderswo aufbewahrt wird",
        "Ce qui est conservé ailleurs",
        "Lo que se guarda en otros lugares";
    elsewhere:
        "Your data is also in stored responses (24 hours), snapshots of lists (at most 7 days) and backups (35 days, unless the \
         operator makes additional ones), and with the recipients of events, exports or receipts. Logs contain no names. The end \
         of the annex has the details.",
        "Ihre Daten stehen auch in gespeicherten Antworten (24 Stunden), Abbildern von Listen (höchstens 7 Tage) und Sicherungen \
         (35 Tage, sofern der Betreiber keine anderen macht) sowie bei Empfängern von Ereignissen, Exporten und Belegen. \
         Protokolle enthalten keine Namen. Mehr steht am Ende des Anhangs.",
        "Vos données se trouvent aussi dans des réponses conservées (24 heures), des instantanés de listes (7 jours au plus) et \
         des sauvegardes (35 jours, sauf si l’exploitant en fait d’autres), et chez ceux qui ont reçu des événements, des \
         exports ou des reçus. Les journaux n’ont pas de noms. La fin de l’annexe en dit plus.",
        "Sus datos están también en respuestas guardadas (24 horas), instantáneas de listas (como máximo 7 días) y copias de \
         seguridad (35 días, salvo que el operador haga otras), y en poder de quienes recibieron eventos, exportaciones o \
         recibos. Los registros de actividad no tienen nombres. El final del anexo dice más.";
    annex: "Annex", "Anhang", "Annexe", "Anexo";
    your_id: "Your ID:", "Ihre ID:", "Votre ID :", "Su ID:";
    times_of: "Times are in the time zone", "Die Zeiten gelten für", "Les heures sont celles de", "Las horas son las de";
    assets: "Devices", "Geräte", "Appareils", "Dispositivos";
    asset: "Device", "Gerät", "Appareil", "Dispositivo";
    when: "When", "Wann", "Quand", "Cuándo";
    to: "to", "bis", "à", "a";
    now: "now", "jetzt", "maintenant", "ahora";
    notes: "Notes about you", "Notizen über Sie", "Notes sur vous", "Notas sobre usted";
    processes: "Processes", "Prozesse", "Processus", "Procesos";
    process: "Process", "Prozess", "Processus", "Proceso";
    started: "Started", "Begonnen", "Début", "Inicio";
    you: "You", "Sie", "Vous", "Usted";
    about_you: "About you", "Über Sie", "Sur vous", "Sobre usted";
    started_it: "started it", "haben ihn begonnen", "l’avez démarré", "lo inició";
    were_picked: "were picked", "wurden ausgewählt", "avez été choisi", "fue elegido";
    had_the_asset: "had the device", "hatten das Gerät", "aviez l’appareil", "tenía el dispositivo";
    submitted_steps: "submitted steps", "haben Schritte übermittelt", "avez envoyé des étapes", "envió pasos";
    signed: "signed", "haben unterschrieben", "avez signé", "firmó";
    submitted_by: "submitted by", "übermittelt von", "envoyée par", "enviada por";
    no_image: "no image of your signature", "kein Bild von Ihnen", "pas d’image de vous", "ninguna imagen de usted";
    cancel_reason: "Reason for the cancellation", "Grund des Abbruchs", "Motif de l’annulation", "Motivo de la cancelación";
    movements:
        "Processes that you started on several devices",
        "Prozesse mit mehreren Geräten, die Sie begonnen haben",
        "Processus sur plusieurs appareils que vous avez démarrés",
        "Procesos con varios dispositivos que usted inició";
    movement: "Movement", "Sammelprozess", "Mouvement", "Movimiento";
    links: "Links to sign", "Links zum Unterschreiben", "Liens de signature", "Enlaces de firma";
    link: "Link to sign", "Link zum Unterschreiben", "Lien de signature", "Enlace de firma";
    signer: "Signer", "Unterschreibende Person", "Signataire", "Firmante";
    created: "Created", "Angelegt", "Création", "Creación";
    opened: "Opened", "Geöffnet", "Ouverture", "Apertura";
    used: "Used", "Benutzt", "Utilisation", "Uso";
    keys: "API keys", "API-Schlüssel", "Clés d’API", "Claves de API";
    key: "API key", "API-Schlüssel", "Clé d’API", "Clave de API";
    last_used: "Last used", "Zuletzt benutzt", "Dernière utilisation", "Último uso";
    revoked: "revoked", "widerrufen", "révoquée", "revocada";
    entries: "History entries", "Einträge in Verläufen", "Entrées d’historiques", "Entradas de historiales";
    entries_note:
        "Every entry that names you or that you caused, with what it says about you. Unchanged values are left out. Other people \
         are named only before the annex, where they handed over or took back a device.",
        "Jeder Eintrag, der Sie nennt oder den Sie verursacht haben, und was er über Sie sagt. Werte, die er nicht ändert, sind \
         weggelassen. Andere Personen stehen nur vor dem Anhang, wo sie ein Gerät übergeben oder zurückgenommen haben.",
        "Chaque entrée qui vous nomme ou que vous avez causée, et ce qu’elle dit de vous, sans les valeurs qu’elle laisse \
         inchangées. D’autres personnes ne sont nommées qu’avant l’annexe, là où elles ont remis ou repris un appareil.",
        "Cada entrada que lo nombra o que usted causó, y lo que dice de usted, sin los valores que deja como estaban. A otras \
         personas solo se las nombra antes del anexo, donde entregaron o recogieron un dispositivo.";
    user: "User", "Person", "Utilisateur", "Usuario";
    was_created: "created", "angelegt", "création", "creación";
    was_changed: "changed", "geändert", "modification", "cambio";
    was_deleted: "deleted", "gelöscht", "suppression", "eliminación";
    was_seen: "seen", "gesehen", "passage", "visto";
    by_you: "by you", "von Ihnen", "par vous", "por usted";
    before: " before", " vorher", " avant", " antes";
    too_much:
        "too much for this page; read the history",
        "zu viel für diese Seite: lesen Sie den Verlauf",
        "trop long pour cette page : lisez l’historique",
        "demasiado para esta página: lea el historial";
    what: "What", "Was", "Quoi", "Qué";
    content: "Content", "Inhalt", "Contenu", "Contenido";
    kept_for: "Kept", "Aufbewahrt", "Durée", "Duración";
    removed_by: "Removed by", "Entfernt durch", "Supprimé par", "Se elimina por";
    /// Data about people outside records and histories (docs/privacy.md), in four parts: what it is, its content, how long it is
    /// kept, and what removes it. The same in the next seven texts.
    kept_responses:
        "Responses stored for retries | Stored responses to requests with an Idempotency-Key, including names | 24 hours | the \
         erasure",
        "Für Wiederholungen gespeicherte Antworten | Die Antwort, mit Namen, auf eine Anfrage mit Idempotency-Key | 24 Stunden | \
         die Löschung",
        "Réponses conservées pour les requêtes répétées | La réponse, avec des noms, à une requête avec Idempotency-Key | 24 \
         heures | l’effacement",
        "Respuestas guardadas para peticiones repetidas | La respuesta, con nombres, a una petición con Idempotency-Key | 24 \
         horas | el borrado";
    kept_snapshots:
        "Snapshots of lists | Names and e-mail addresses of users; names, tags and serial numbers of assets | at most 7 days | \
         the erasure",
        "Abbilder von Listen | Namen und E-Mail-Adressen von Personen; Namen, Nummern und Seriennummern von Geräten | höchstens \
         7 Tage | die Löschung",
        "Instantanés de listes | Noms et adresses e-mail des utilisateurs ; noms, étiquettes et numéros de série des appareils | \
         7 jours au plus | l’effacement",
        "Instantáneas de listas | Nombres y direcciones de correo de usuarios; nombres, etiquetas y números de serie de \
         dispositivos | como máximo 7 días | el borrado";
    kept_deliveries:
        "Records of deliveries to webhooks | IDs of events, times, and the status of responses | 30 days after the last attempt \
         | deleting the webhook",
        "Aufzeichnungen über Zustellungen an Webhooks | IDs von Ereignissen, Zeiten und der Status der Antworten | 30 Tage nach \
         dem letzten Versuch | das Löschen des Webhooks",
        "Traces des envois aux webhooks | ID d’événements, heures et statut des réponses | 30 jours après le dernier essai | la \
         suppression du webhook",
        "Registros de envíos a webhooks | ID de eventos, horas y estado de las respuestas | 30 días tras el último intento | la \
         eliminación del webhook";
    kept_logs:
        "Logs | IDs of requests, keys and resources; no names and no values | as configured by the operator | the operator",
        "Protokolle | IDs von Anfragen, Schlüsseln und Datensätzen; keine Namen und keine Werte | so lange, wie der Betreiber es \
         eingestellt hat | den Betreiber",
        "Journaux | ID de requêtes, de clés et de ressources ; ni noms ni valeurs | selon le réglage de l’exploitant | \
         l’exploitant",
        "Registros de actividad | ID de peticiones, claves y recursos; ni nombres ni valores | lo que haya fijado el operador | \
         el operador";
    kept_erasures:
        "The record of an erasure | The user's ID and the times of the erasure | as long as the organization exists | deleting \
         the organization",
        "Die Aufzeichnung einer Löschung | Die ID der Person und die Zeiten der Löschung | solange es die Organisation gibt | \
         das Löschen der Organisation",
        "La trace d’un effacement | L’ID de l’utilisateur et les heures de l’effacement | tant que l’organisation existe | la \
         suppression de l’organisation",
        "El registro de un borrado | El ID del usuario y las horas del borrado | mientras exista la organización | la \
         eliminación de la organización";
    kept_backups:
        "Backups | Everything, as it was at the time | 35 days, unless the operator makes additional backups | nothing; after a \
         restore, the operator repeats the erasures",
        "Sicherungen | Alles, wie es zu der Zeit war | 35 Tage, sofern der Betreiber keine anderen macht | nichts; nach einer \
         Wiederherstellung wiederholt der Betreiber die Löschungen",
        "Sauvegardes | Tout, dans l’état du moment | 35 jours, sauf si l’exploitant en fait d’autres | rien ; après une \
         restauration, l’exploitant répète les effacements",
        "Copias de seguridad | Todo, como estaba en ese momento | 35 días, salvo que el operador haga otras | nada; tras una \
         restauración, el operador repite los borrados";
    kept_events:
        "Copies at webhook receivers and consumers of the EventBridge bus | The entries sent to them | as long as the receiver \
         decides | the receiver, notified by the operator",
        "Kopien bei Empfängern von Webhooks und des EventBridge-Busses | Die Einträge, die ihnen geschickt wurden | wie der \
         Empfänger entscheidet | den Empfänger, dem der Betreiber es sagt",
        "Copies chez les destinataires de webhooks et du bus EventBridge | Les entrées qui leur ont été envoyées | selon le \
         destinataire | le destinataire, que l’exploitant prévient",
        "Copias en receptores de webhooks y del bus de EventBridge | Las entradas que se les enviaron | lo que decida el \
         receptor | el receptor, a quien avisa el operador";
    kept_receipts:
        "Receipts and exports handed out | Their content | as long as their holder decides | their holder",
        "Ausgegebene Belege und Exporte | Was sie zeigen | wie ihr Besitzer entscheidet | ihren Besitzer",
        "Reçus et exports remis | Ce qu’ils montrent | selon leur détenteur | leur détenteur",
        "Recibos y exportaciones entregados | Lo que muestran | lo que decida quien los tiene | quien los tiene";
}

impl Texts {
    /// Returns the data about people outside records and histories.
    pub(super) fn kept(&self) -> [KeptData; 8] {
        let kept = [
            self.kept_responses,
            self.kept_snapshots,
            self.kept_deliveries,
            self.kept_logs,
            self.kept_erasures,
            self.kept_backups,
            self.kept_events,
            self.kept_receipts,
        ];
        kept.map(|row| {
            let mut parts = row.split(" | ");
            let mut part = || parts.next().unwrap_or_default();
            KeptData { what: part(), content: part(), kept_for: part(), removed_by: part() }
        })
    }
}
