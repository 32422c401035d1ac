//! `/v1/processes` and `/v1/movements`: process definitions, process instances and movements; and the offboarding of users,
//! which starts movements.

mod definitions;
mod guests;
mod instances;
mod links;
mod movements;
mod offboarding;
mod receipts;
pub mod signing;
mod subject;

shared::endpoints! {
    definitions: list_processes, create_process, get_process, update_process, delete_process;
    instances: start_process, list_instances, get_instance, advance_instance, cancel_instance, get_signature, get_instance_history;
    receipts: get_receipt, get_movement_receipt;
    offboarding: offboard_user;
    links: create_instance_link, list_instance_links, get_instance_link, revoke_instance_link,
        create_movement_link, list_movement_links, get_movement_link, revoke_movement_link;
    guests: erase_instance_signer, erase_movement_signer;
    movements: list_movements, get_movement, advance_movement, cancel_movement;
}
