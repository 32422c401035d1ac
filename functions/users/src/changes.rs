//! Creates, changes and deletes users: one per request, several in one transaction for a batch, or row by row for an import.

use crate::handlers::{NewUser, UserPatch, UserView};
use serde_json::json;
use shared::auth::caller::UsersWrite;
use shared::auth::{Caller, Principal};
use shared::domain::keys::api_key::Role;
use shared::domain::record::{Expected, ExpectedVersions, Kind, Stored, StoredResponse};
use shared::domain::user::{Email, User, UserChange};
use shared::domain::values::field_error::{FieldError, ValueError};
use shared::domain::values::id::{Id, UserId};
use shared::http::bulk::import::{RowChanges, RowResult, row_response};
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
    Ok(operation.commit(&caller, Inputs::default(), UserOutcome::response).await?.user)
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
    let user = operation.commit(&caller, inputs, UserOutcome::response).await?.user.into();
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

impl UserOutcome {
    /// Returns the response that the operation gets as a single request.
    ///
    /// # Errors
    ///
    /// Returns [`StoreError::Internal`] if the response can't be serialized.
    pub(crate) fn response(&self) -> Result<StoredResponse, StoreError> {
        let user = self.user.clone();
        match self.result {
            _ if self.is_deleted => Data { data: UserView::from(user) }.to_stored(Vec::new()),
            RowResult::Created => Created::<UserView>::of("users", user).to_stored(Vec::new()),
            _ => Versioned::<UserView>::from(user).to_stored(Vec::new()),
        }
    }

    fn row_response(&self) -> Result<StoredResponse, StoreError> {
        row_response(self.result, self.user.value.id.uuid(), self.changes.as_ref())
    }
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

impl UserOperation {
    /// Reads the users that the operations concern, and those that have the addresses that operations set. Takes a round trip for
    /// the addresses, if there are any, and one for the users.
    async fn lookups(principal: &Principal, operations: &[&Self]) -> Result<(HashMap<String, UserId>, BatchResult), ApiError> {
        let emails: BTreeSet<String> = operations.iter().filter_map(|operation| operation.email()).collect();
        let emails: Vec<_> = emails.into_iter().map(User::unique_email).collect();
        let owners = principal.store.owners::<User>(&emails).await?;
        let id = |operation: &&Self| if let Target::Id(id) = operation.target { Some(id) } else { None };
        let ids: BTreeSet<UserId> = operations.iter().filter_map(id).chain(owners.values().copied()).collect();
        let users = principal.store.batch_get(BatchGet::new().with_all::<User>(ids)).await?;
        Ok((owners, users))
    }

    /// Reads the inputs of several operations together. Returns the inputs or the error of each.
    pub(crate) async fn read_all(principal: &Principal, operations: &[&Self]) -> Result<Vec<Result<Inputs, ApiError>>, ApiError> {
        let (owners, users) = Self::lookups(principal, operations).await?;
        Ok(operations.iter().map(|operation| operation.inputs(&owners, &users)).collect())
    }

    async fn read(&self, principal: &Principal) -> Result<Inputs, ApiError> {
        let (owners, users) = Self::lookups(principal, &[self]).await?;
        self.inputs(&owners, &users)
    }

    /// Decides the change and adds it to `unit`. Has no other effect, because it is called again if another writer was faster.
    ///
    /// # Errors
    ///
    /// Returns why the change isn't possible.
    pub(crate) fn decide(
        &self,
        principal: &Principal,
        unit: &mut UnitOfWork<'_>,
        Inputs { user, email_owner }: &Inputs,
    ) -> Result<UserOutcome, ApiError> {
        let Some(old) = user else {
            let Action::Write(write) = &self.action else { return Err(ApiError::NotFound) };
            let user = new_user(self.new_id, write)?;
            self.role.check_user(None, &user)?;
            check_email(&user, *email_owner)?;
            return Ok(UserOutcome { user: unit.create(user)?, result: RowResult::Created, is_deleted: false, changes: None });
        };
        self.expected.check(old).map_err(ApiError::PreconditionFailed)?;
        let Action::Write(write) = &self.action else {
            self.role.check_power_over(old.value.role)?;
            unit.delete(old)?;
            return Ok(UserOutcome { user: old.clone(), result: RowResult::Updated, is_deleted: true, changes: None });
        };
        let next = changed_user(old, write)?;
        self.role.check_user(Some(&old.value), &next)?;
        check_email(&next, *email_owner)?;
        let user = unit.update(old, next)?;
        let result = if user.version == old.version { RowResult::Unchanged } else { RowResult::Updated };
        let changes = principal.store.is_dry_run().then(|| RowChanges::of(old.changes_to(&user.value)));
        Ok(UserOutcome { user, result, is_deleted: false, changes })
    }

    /// Commits the operation alone, from inputs that were just read, and stores the response that `respond` builds.
    ///
    /// # Errors
    ///
    /// Same as [`Principal::retry`].
    pub(crate) async fn commit(
        &self,
        principal: &Principal,
        inputs: Inputs,
        respond: fn(&UserOutcome) -> Result<StoredResponse, StoreError>,
    ) -> Result<UserOutcome, ApiError> {
        let attempt = |inputs| async move {
            let mut unit = principal.unit();
            let outcome = self.decide(principal, &mut unit, &inputs)?;
            match unit.commit_with(|| respond(&outcome)).await {
                Ok(()) => Ok(outcome),
                // A concurrent request created the user. The retry finds it by its address.
                Err(error @ WriteError::Duplicate(..)) if matches!(self.target, Target::Email(_)) => {
                    Err(CommitFailure::Outdated(error))
                }
                Err(error) => Err(error.into()),
            }
        };
        // Boxed, because the compiler limits how deep future types can nest.
        principal.retry(inputs, || Box::pin(self.read(principal)), attempt).await
    }

    /// Like [`UserOperation::commit`], but reads the inputs first.
    ///
    /// # Errors
    ///
    /// Same as [`Principal::retry`].
    pub(crate) async fn read_and_commit(&self, principal: &Principal) -> Result<UserOutcome, ApiError> {
        let inputs = Box::pin(self.read(principal)).await?;
        self.commit(principal, inputs, UserOutcome::response).await
    }

    /// Commits a row of an import. Reads the inputs if `inputs` is `None`.
    ///
    /// # Errors
    ///
    /// Same as [`Principal::retry`], with errors in the columns of the row.
    pub(crate) async fn commit_row(
        &self,
        principal: &Principal,
        inputs: Option<Result<Inputs, ApiError>>,
    ) -> Result<StoredResponse, ApiError> {
        let committed = async {
            let inputs = match inputs {
                Some(inputs) => inputs?,
                None => Box::pin(self.read(principal)).await?,
            };
            Ok(self.commit(principal, inputs, UserOutcome::row_response).await?.row_response()?)
        };
        committed.await.map_err(locate)
    }

    /// Returns the unique field that the operation sets, with its value.
    pub(crate) fn unique_value(&self) -> Option<(&'static str, String)> {
        Some(("email", self.email()?))
    }

    /// Returns the user, and the addresses before and after the change: one row can free an address that another row sets.
    pub(crate) fn names(&self, inputs: &Inputs) -> BTreeSet<String> {
        let user = inputs.user.as_ref();
        let current = user.map(|user| user.value.email.folded());
        let emails = current.into_iter().chain(self.email()).map(|email| format!("email {email}"));
        emails.chain(user.map(|user| format!("user {}", user.value.id))).collect()
    }
}

/// Reports errors in columns, and an unknown user as an error in `id`.
fn locate(error: ApiError) -> ApiError {
    match error {
        ApiError::Invalid(errors) => ApiError::Invalid(errors.into_iter().map(FieldError::in_column).collect()),
        ApiError::NotFound => ApiError::Invalid(vec![FieldError::column("id", "is not the ID of a user of this tenant")]),
        other => other,
    }
}
