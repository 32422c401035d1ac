//! `/v1/processes` and `/v1/movements`: process definitions, process instances and movements; and the offboarding of users,
//! which starts movements.

mod commands;
mod definition_wire;
mod definitions;
mod instance_wire;
mod instances;
mod link_subject;
mod link_wire;
mod links;
mod movement_commands;
mod movement_start;
mod movements;
mod new_link;
mod offboard;
mod offboard_wire;
mod process_error;
mod receipt_page;
mod receipts;
pub mod signing;
mod submission;
mod views;

shared::endpoints! {
    definitions: list_processes, create_process, get_process, update_process, delete_process;
    instances: start_process, list_instances, get_instance, advance_instance, cancel_instance, get_signature, get_instance_history;
    receipts: get_receipt, get_movement_receipt;
    offboard: offboard_user;
    links: create_instance_link, list_instance_links, get_instance_link, revoke_instance_link,
        create_movement_link, list_movement_links, get_movement_link, revoke_movement_link;
    movements: list_movements, get_movement, advance_movement, cancel_movement;
}
