//! The texts of printed receipts in each language. A text that continues after a value has two rows.

use shared::domain::assets::asset::Status;
use shared::domain::processes::instance::InstanceStatus;

shared::texts! {
    receipt: "Receipt", "Beleg", "Reçu", "Recibo";
    tenant: "Tenant", "Mandant", "Client", "Cliente";
    has_erased_people:
        "The data of a person was erased. “Erased user” and eight characters replace names, texts and signatures. Receipts \
         handed out earlier remain valid.",
        "Die Daten einer Person wurden gelöscht. Anstelle von Namen, Texten und Unterschriften stehen „Erased user“ und acht \
         Zeichen. Ein Beleg, der vorher ausgegeben wurde, ist weiterhin gültig.",
        "Les données d’une personne ont été effacées. « Erased user » et huit caractères remplacent les noms, les textes et les \
         signatures. Un reçu remis auparavant reste valable.",
        "Se borraron los datos de una persona. «Erased user» y ocho caracteres sustituyen los nombres, los textos y las firmas. \
         Un recibo entregado antes sigue siendo válido.";
    asset: "Asset", "Gerät", "Appareil", "Dispositivo";
    assets: "Assets", "Geräte", "Appareils", "Dispositivos";
    manufacturer: "Manufacturer", "Hersteller", "Fabricant", "Fabricante";
    model: "Model", "Modell", "Modèle", "Modelo";
    serial_number: "Serial number", "Seriennummer", "Numéro de série", "Número de serie";
    location: "Location", "Standort", "Lieu", "Ubicación";
    status_afterwards: "Status afterwards", "Status danach", "Statut ensuite", "Estado posterior";
    started: "Started", "Begonnen", "Début", "Inicio";
    started_by: "by", "von", "par", "por";
    completed_at: "Completed", "Abgeschlossen", "Fin", "Fin";
    process_instance: "Process instance", "Prozess", "Processus", "Proceso";
    movement: "Movement", "Sammelprozess", "Mouvement", "Movimiento";
    movement_id: "Movement ID", "ID des Sammelprozesses", "ID du mouvement", "ID del movimiento";
    not_handled:
        "not handled by this movement",
        "nicht Teil dieses Sammelprozesses",
        "hors de ce mouvement",
        "fuera de este movimiento";
    reason: "Reason", "Grund", "Motif", "Motivo";
    steps: "Steps", "Schritte", "Étapes", "Pasos";
    step_closed: "step closed", "Schritt geschlossen", "étape close", "paso cerrado";
    key: "key", "Schlüssel", "clé", "clave";
    signing_link: "signing link", "Link zum Unterschreiben", "lien de signature", "enlace de firma";
    yes: "yes", "ja", "oui", "sí";
    not_checked: "not checked", "nicht angekreuzt", "non coché", "sin marcar";
    signature: "Signature", "Unterschrift", "Signature", "Firma";
    too_large:
        "The image doesn’t fit on this page with the others:",
        "Neben den anderen zu groß für diese Seite:",
        "Trop grand pour cette page avec les autres :",
        "Demasiado grande para esta página junto a las demás:";
    image_missing:
        "The image is missing or has changed.",
        "Das Bild fehlt oder ist jetzt ein anderes.",
        "L’image manque, ou n’est plus la même.",
        "La imagen falta o ahora es otra.";
    typed:
        "The name was typed, not drawn.",
        "Der Name wurde getippt, nicht gezeichnet.",
        "Le nom a été tapé, non dessiné.",
        "El nombre se escribió con el teclado, no se dibujó.";
    signature_of_receipt: "Signature of this receipt", "Signatur dieses Belegs", "Signature de ce reçu", "Firma de este recibo";
    signed_json:
        "Ed25519 over the canonical JSON (RFC 8785) of the receipt, which the same address returns without",
        "Ed25519 über das kanonische JSON (RFC 8785) des Belegs. Dieselbe Adresse liefert es ohne",
        "Ed25519 sur le JSON canonique (RFC 8785) du reçu, que la même adresse renvoie sans",
        "Ed25519 sobre el JSON canónico (RFC 8785) del recibo, que la misma dirección devuelve sin";
    signing_key: "Key", "Schlüssel", "Clé", "Clave";
    signature_value: "signature", "Signatur", "signature", "firma";
    times_of:
        "Times on this page are in the time zone",
        "Die Zeiten auf dieser Seite gelten für",
        "Les heures de cette page sont celles de",
        "Las horas de esta página son las de";
    not_signed:
        "The signed receipt has times in UTC, and the organization’s tenant ID instead of its name. The organization’s name and \
         time zone come from its current settings and are not signed.",
        "Der signierte Beleg nennt sie in UTC, und die Organisation mit der ID ihres Mandanten. Name und Zeitzone der \
         Organisation stammen aus ihren jetzigen Einstellungen und sind nicht signiert.",
        "Le reçu signé les indique en UTC et désigne l’organisation par l’ID de son client. Le nom et le fuseau horaire de \
         l’organisation viennent de ses réglages actuels et ne sont pas signés.",
        "El recibo firmado las indica en UTC y nombra a la organización por el ID de su cliente. El nombre y la zona horaria de \
         la organización vienen de su configuración actual y no están firmados.";
    hashes: "Hashes", "Hashwerte", "Empreintes", "Hashes";
    image_hashes:
        "Images of signatures (SHA-256)",
        "Bilder der Unterschriften (SHA-256)",
        "Images des signatures (SHA-256)",
        "Imágenes de las firmas (SHA-256)";
    history: "History", "Verlauf", "Historique", "Historial";
    in_stock: "In stock", "Auf Lager", "En stock", "En almacén";
    preparing: "Preparing", "In Vorbereitung", "En préparation", "En preparación";
    in_use: "In use", "In Gebrauch", "En service", "En uso";
    in_service: "In service", "In Reparatur", "En réparation", "En reparación";
    returned: "Returned", "Zurückgegeben", "Rendu", "Devuelto";
    scrapped: "Scrapped", "Ausgemustert", "Mis au rebut", "Desechado";
    in_progress: "In progress", "Läuft", "En cours", "En curso";
    completed: "Completed", "Abgeschlossen", "Terminé", "Completado";
    cancelled: "Cancelled", "Abgebrochen", "Annulé", "Cancelado";
}

impl Texts {
    pub(super) const fn asset_status(&self, status: Status) -> &'static str {
        match status {
            Status::InStock => self.in_stock,
            Status::Preparing => self.preparing,
            Status::InUse => self.in_use,
            Status::InService => self.in_service,
            Status::Returned => self.returned,
            Status::Scrapped => self.scrapped,
        }
    }

    pub(super) const fn instance_status(&self, status: InstanceStatus) -> &'static str {
        match status {
            InstanceStatus::InProgress => self.in_progress,
            InstanceStatus::Completed => self.completed,
            InstanceStatus::Cancelled => self.cancelled,
        }
    }
}
