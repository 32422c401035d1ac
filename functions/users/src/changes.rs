//! Creates, changes and deletes users: one per request, several in one transaction for a batch, or row by row for an import.

use crate::handlers::{NewUser, UserPatch, UserView};
use serde_json::json;
use shared::auth::caller::UsersWrite;
use shared::auth::{Caller, ImportRow, Operation, Principal};
use shared::domain::keys::api_key::Role;
use shared::domain::record::{Expected, ExpectedVersions, Kind, Record, Stored, StoredResponse};
use shared::domain::user::{Email, User, UserChange};
use shared::domain::values::field_error::{FieldError, ValueError};
use shared::domain::values::id::{Id, UserId};
use shared::http::bulk::import::{RowChanges, RowError, RowResult, row_response};
use shared::http::requests::body::{JsonBody, ReadOnlyFields};
use shared::http::responses::{ApiError, ChangedUser, ConflictCode, Created, Data, Deactivation, Success, Versioned};
use shared::store::{BatchGet, BatchResult, CommitFailure, StoreError, UnitOfWork, WriteError};
use std::collections::{BTreeSet, HashMap};

/// # Errors
///
/// Returns [`ApiError::Invalid`] with every bad field, [`ApiError::Conflict`] if another user has the address, and
/// [`ApiError::NotGrantable`] for a role above the caller's.
pub(crate) async fn create(caller: &Caller<UsersWrite>, new: NewUser) -> Result<Stored<User>, ApiError> {
    let caller = caller.verified().await?;
    let action = Action::Write(Box::new(UserWrite { change: new.into(), ..UserWrite::default() }));
    let operation = UserOperation::new(caller.role, caller.store.new_id(caller.context.at)?, Target::New, action);
    Ok(caller.execute_operation(&operation, Inputs::default()).await?.user)
}

/// Keeps concurrent changes to other fields.
pub(crate) async fn change(
    caller: &Caller<UsersWrite>,
    id: UserId,
    body: JsonBody<UserPatch>,
) -> Result<ChangedUser<UserView>, ApiError> {
    let (user, patch) = caller.patch::<User, UserView, _>(id, body, |_, _| None).await?;
    let caller = caller.verified().await?;
    let change = UserChange::from(patch);
    let deactivates = change.is_active == Some(false);
    let action = Action::Write(Box::new(UserWrite { change, ..UserWrite::default() }));
    let operation = UserOperation::new(caller.role, id, Target::Id(id), action);
    let inputs = Inputs { user: Some(user), email_owner: None };
    let user = caller.execute_operation(&operation, inputs).await?.user.into();
    // Read after the change: since then, no instance can pick the user.
    let meta = if deactivates { Some(Deactivation { picked_in: caller.store.picked_in(id).await? }) } else { None };
    Ok(ChangedUser { user, meta })
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Target {
    New,
    Id(UserId),
    /// The user with this e-mail address (case-folded), or a new user.
    Email(String),
}

pub(crate) enum Action {
    Write(Box<UserWrite>),
    Delete,
    /// Changes nothing: the operation or row has these errors.
    Refuse(Vec<FieldError>),
}

#[derive(Default)]
pub(crate) struct UserWrite {
    pub(crate) change: UserChange,
    pub(crate) unchanged: ReadOnlyFields,
    pub(crate) errors: Vec<FieldError>,
}

pub(crate) struct UserOutcome {
    user: Stored<User>,
    result: RowResult,
    is_deleted: bool,
    /// Only for an update in a dry run.
    changes: Option<RowChanges>,
}

pub(crate) struct UserOperation {
    /// The caller's role, which is the highest role that the caller can grant.
    role: Role,
    /// Only used if a user is created.
    new_id: UserId,
    target: Target,
    action: Action,
    expected: Expected,
}

#[derive(Default)]
pub(crate) struct Inputs {
    /// `None` for a new user.
    user: Option<Stored<User>>,
    /// The user who has the address that the operation sets.
    email_owner: Option<UserId>,
}

impl UserOperation {
    pub(crate) fn new(role: Role, new_id: UserId, target: Target, action: Action) -> Self {
        let updated_at = if let Action::Write(write) = &action { write.unchanged.updated_at() } else { None };
        Self { role, new_id, target, action, expected: Expected { versions: None, updated_at } }
    }

    /// Sets what the operation expects of the user, besides the `updated_at` in its body.
    pub(crate) fn with_if_match(self, versions: Option<ExpectedVersions>) -> Self {
        Self { expected: Expected { versions, ..self.expected }, ..self }
    }

    /// Returns the address that the operation sets or matches, case-folded.
    fn email(&self) -> Option<String> {
        match (&self.target, &self.action) {
            (Target::Email(email), _) => Some(email.clone()),
            (_, Action::Write(write)) => write.change.email.as_ref().map(Email::folded),
            _ => None,
        }
    }

    /// Finds the operation's user and the owner of its address. `owners` maps case-folded addresses to users.
    fn inputs(&self, owners: &HashMap<String, UserId>, users: &BatchResult) -> Result<Inputs, ApiError> {
        if let Action::Refuse(errors) = &self.action {
            return Err(ApiError::Invalid(errors.clone()));
        }
        let email_owner = self.email().and_then(|email| owners.get(&email).copied());
        let id = match &self.target {
            Target::New => None,
            Target::Id(id) => Some(*id),
            Target::Email(_) => email_owner,
        };
        let user = id.map(|id| users.get::<User>(Some(id))?.ok_or(ApiError::NotFound)).transpose()?;
        Ok(Inputs { user, email_owner })
    }
}

fn new_user(id: UserId, write: &UserWrite) -> Result<User, ApiError> {
    let mut errors = write.errors.clone();
    write.unchanged.refuse_in_creation(&mut errors);
    let has_error = |field: &str| write.errors.iter().any(|error| error.is_about(field));
    let UserChange { email, display_name, role, is_active } = write.change.clone();
    let missing = [("email", email.is_none()), ("display_name", display_name.is_none())];
    let missing = missing.into_iter().filter(|(field, is_missing)| *is_missing && !has_error(field));
    errors.extend(missing.map(|(field, _)| FieldError::field(field, ValueError::required())));
    errors.extend(email.as_ref().and_then(reserved));
    match (email, display_name) {
        (Some(email), Some(display_name)) if errors.is_empty() => Ok(User {
            id,
            email,
            display_name,
            role: role.unwrap_or(Role::Viewer),
            is_active: is_active.unwrap_or(true),
            erased_at: None,
        }),
        _ => Err(ApiError::Invalid(errors)),
    }
}

fn changed_user(old: &Stored<User>, write: &UserWrite) -> Result<User, ApiError> {
    let mut errors = write.errors.clone();
    errors.extend(write.unchanged.errors(&UserView::from(old.clone()))?);
    if !errors.is_empty() {
        return Err(ApiError::Invalid(errors));
    }
    let next = old.value.changed(&write.change);
    if let Some(error) = Some(&next.email).filter(|email| **email != old.value.email).and_then(reserved) {
        return Err(ApiError::Invalid(vec![error]));
    }
    if next != old.value && old.value.erased_at.is_some() {
        let detail = "The user was erased and can't be changed.";
        return Err(ApiError::conflict(ConflictCode::Conflict, detail, json!({"erased": true})));
    }
    Ok(next)
}

fn reserved(email: &Email) -> Option<FieldError> {
    email.check_free().err().map(|error| FieldError::field("email", error.to_string()))
}

fn check_email(user: &User, owner: Option<UserId>) -> Result<(), ApiError> {
    match owner.filter(|owner| *owner != user.id) {
        Some(owner) => Err(WriteError::Duplicate("email", Some((Kind::User, owner.uuid()))).into()),
        None => Ok(()),
    }
}

impl Operation for UserOperation {
    type Inputs = Inputs;
    type Outcome = UserOutcome;

    /// Takes a round trip for the owners of e-mail addresses, if there are addresses, and a round trip for the users.
    async fn read(principal: &Principal, operations: &[&Self], _: bool) -> Result<Vec<Result<Inputs, ApiError>>, ApiError> {
        let emails: BTreeSet<String> = operations.iter().filter_map(|operation| operation.email()).collect();
        let emails: Vec<_> = emails.into_iter().map(User::unique_email).collect();
        let owners = principal.store.owners::<User>(&emails).await?;
        let id = |operation: &&Self| if let Target::Id(id) = operation.target { Some(id) } else { None };
        let ids: BTreeSet<UserId> = operations.iter().filter_map(id).chain(owners.values().copied()).collect();
        let users = principal.store.batch_get(BatchGet::new().with_all::<User>(ids)).await?;
        Ok(operations.iter().map(|operation| operation.inputs(&owners, &users)).collect())
    }

    fn decide(
        &self,
        principal: &Principal,
        unit: &mut UnitOfWork<'_>,
        Inputs { user, email_owner }: &Inputs,
    ) -> Result<UserOutcome, CommitFailure<ApiError>> {
        let Some(old) = user else {
            let Action::Write(write) = &self.action else { return Err(ApiError::NotFound.into()) };
            let user = new_user(self.new_id, write)?;
            self.role.check_user(None, &user).map_err(ApiError::from)?;
            check_email(&user, *email_owner)?;
            return Ok(UserOutcome { user: unit.create(user)?, result: RowResult::Created, is_deleted: false, changes: None });
        };
        self.expected.check(old).map_err(ApiError::PreconditionFailed)?;
        let Action::Write(write) = &self.action else {
            self.role.check_power_over(old.value.role).map_err(ApiError::from)?;
            unit.delete(old)?;
            return Ok(UserOutcome { user: old.clone(), result: RowResult::Updated, is_deleted: true, changes: None });
        };
        let next = changed_user(old, write)?;
        self.role.check_user(Some(&old.value), &next).map_err(ApiError::from)?;
        check_email(&next, *email_owner)?;
        let user = unit.update(old, next)?;
        let result = if user.version == old.version { RowResult::Unchanged } else { RowResult::Updated };
        let changes = principal.store.is_dry_run().then(|| RowChanges::of(old.changes_to(&user.value)));
        Ok(UserOutcome { user, result, is_deleted: false, changes })
    }

    fn classify_failure(&self, error: WriteError) -> CommitFailure<ApiError> {
        match (&error, &self.target) {
            // A concurrent request created the user. The retry finds it by its address.
            (WriteError::Duplicate(..), Target::Email(_)) => CommitFailure::Outdated(error),
            _ => error.into(),
        }
    }

    fn unique_value(&self) -> Option<(&'static str, String)> {
        Some(("email", self.email()?))
    }

    fn response(outcome: &UserOutcome) -> Result<StoredResponse, StoreError> {
        let user = outcome.user.clone();
        match outcome.result {
            _ if outcome.is_deleted => Data { data: UserView::from(user) }.to_stored(Vec::new()),
            RowResult::Created => Created::<UserView>::of("users", user).to_stored(Vec::new()),
            _ => Versioned::<UserView>::from(user).to_stored(Vec::new()),
        }
    }
}

impl ImportRow for UserOperation {
    /// Returns the user, and the addresses before and after the change: one row can free an address that another row sets.
    fn subjects(&self, inputs: &Inputs) -> BTreeSet<String> {
        let user = inputs.user.as_ref();
        let current = user.map(|user| user.value.email.folded());
        let emails = current.into_iter().chain(self.email()).map(|email| format!("email {email}"));
        emails.chain(user.map(|user| format!("user {}", user.value.id))).collect()
    }

    /// Reports errors in columns, and an unknown user as an error in `id`.
    fn locate(&self, error: ApiError) -> ApiError {
        match error {
            ApiError::Invalid(errors) => ApiError::Invalid(errors.into_iter().map(FieldError::in_column).collect()),
            ApiError::NotFound => ApiError::Invalid(vec![FieldError::column("id", "is not the ID of a user of this tenant")]),
            other => other,
        }
    }

    fn row_response(outcome: &UserOutcome, skipped: &[RowError]) -> Result<StoredResponse, StoreError> {
        row_response(outcome.result, outcome.user.value.id().uuid(), outcome.changes.as_ref(), skipped)
    }
}
