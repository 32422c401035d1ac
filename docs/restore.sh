#!/usr/bin/env bash
# Restores the table, as it was at a point in time, to a separate table, and checks every tenant in it. Changes nothing else, so
# it is also the drill: docs/runbook.md#restore.
#   restore.sh 2026-11-21T08:00:00Z
#   restore.sh latest      # about five minutes ago
#   restore.sh --drop      # deletes the separate table, after a drill
# Needs the AWS CLI, `admin`, jq, the policies admin.json and restore.json, and these variables:
#   TABLE_NAME             the table to restore
#   RESTORED_TABLE_NAME    the separate table (default: asset-lifecycle-restored)
#   BACKUP_DAYS            the stack's BackupDays (default: 35)
set -euo pipefail

: "${1:?which point in time, or --drop?}" "${TABLE_NAME:?}"
new=${RESTORED_TABLE_NAME:-asset-lifecycle-restored}
[[ $new != "$TABLE_NAME" ]] || { echo "restore: $new is the table itself" >&2; exit 1; }
dynamodb() { aws dynamodb "$@" --output text; }
# A change fails while the table is UPDATING. `aws dynamodb wait` gives up after eight minutes.
active() {
  until dynamodb describe-table --table-name "$new" --query Table.TableStatus | grep -qx ACTIVE; do sleep 20; done
}

if [[ $1 == --drop ]]; then
  dynamodb update-table --table-name "$new" --no-deletion-protection-enabled >/dev/null
  active
  dynamodb delete-table --table-name "$new" --query TableDescription.TableStatus
  exit
fi

time=(--restore-date-time "$1")
[[ $1 != latest ]] || time=(--use-latest-restorable-time)
dynamodb restore-table-to-point-in-time --source-table-name "$TABLE_NAME" --target-table-name "$new" "${time[@]}" \
  --query TableDescription.TableStatus
active
# A restore doesn't copy these four settings.
dynamodb update-time-to-live --table-name "$new" --time-to-live-specification Enabled=true,AttributeName=expires >/dev/null
# Unavailable for some minutes after a table was created.
for attempt in {1..30}; do
  dynamodb update-continuous-backups --table-name "$new" \
    --point-in-time-recovery-specification "PointInTimeRecoveryEnabled=true,RecoveryPeriodInDays=${BACKUP_DAYS:-35}" >/dev/null && break
  ((attempt < 30))
  sleep 20
done
active
dynamodb update-table --table-name "$new" --deletion-protection-enabled >/dev/null
active
dynamodb update-table --table-name "$new" --stream-specification StreamEnabled=true,StreamViewType=NEW_IMAGE >/dev/null
active

export TABLE_NAME=$new
# A repair must not send messages about the old table's deliveries.
unset RETRY_QUEUE_URL
admin doctor --json
# The table may contain only parts of the last transactions: what can be derived is derived again.
tenants=$(admin tenant list --json | jq -r .tenant_id)
failed=()
for tenant in $tenants; do
  admin check --tenant "$tenant" --repair --json && admin verify --tenant "$tenant" --json || failed+=("$tenant")
done
stream=$(dynamodb describe-table --table-name "$new" --query Table.LatestStreamLabel)
echo "restored in $((SECONDS / 60)) min: RestoredTable=$new RestoredTableStream=$stream"
((${#failed[@]} == 0)) || { echo "restore: findings of the tenants ${failed[*]}: docs/runbook.md#restore, step 2" >&2; exit 1; }
