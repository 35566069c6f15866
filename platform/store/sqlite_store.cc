#include "store/sqlite_store.h"

#include <sqlite3.h>

#include <algorithm>
#include <limits>

#include "base/files.h"
#include "store/job_reader.h"
#include "store/records.h"
#include "store/sqlite_schema.h"
#include "store/store.h"

namespace muster::store {

using base::ErrorCode;
using job::Job;

/// Prepared once: parsing costs more than running.
struct SqliteStore::Statements {
  SqliteStatement insert_job, update_job, remove_job, find_job;
  SqliteStatement put_object, remove_object;
  SqliteStatement put_project, remove_project;
  SqliteStatement cordon, uncordon;
  SqliteStatement put_account, remove_account;
  SqliteStatement put_token, remove_token;
  SqliteStatement put_secret, remove_secret;
  SqliteStatement put_subscription, remove_subscription;
  SqliteStatement put_delivery, remove_delivery;
  SqliteStatement append_audit;
  SqliteStatement begin, commit, rollback;
};

SqliteStore::SqliteStore(SqliteDatabase database, const std::filesystem::path& file)
    : database_(std::move(database)), spare_room_(file.string() + "-spare") {}
SqliteStore::~SqliteStore() = default;

Result<std::unique_ptr<SqliteStore>> SqliteStore::open(const std::filesystem::path& file) {
  // A server must be able to start on a full disk, so that its jobs can be deleted.
  if (base::is_disk_full(file.parent_path())) SpareRoom(file.string() + "-spare").release();
  MUSTER_TRY(SqliteDatabase opened, SqliteDatabase::open(file, SqliteDatabase::Mode::kMake));
  std::unique_ptr<SqliteStore> store(new SqliteStore(std::move(opened), file));
  SqliteDatabase& database = store->database_;
  MUSTER_CHECK(database.execute("PRAGMA journal_mode = WAL"));
  MUSTER_CHECK(database.execute("PRAGMA synchronous = FULL"));
  // A checkpoint syncs twice and writes every changed page again: rare checkpoints are cheaper.
  MUSTER_CHECK(database.execute("PRAGMA wal_autocheckpoint = 8000"));
  MUSTER_CHECK(database.execute("PRAGMA cache_size = -65536"));  // KiB
  MUSTER_CHECK(database.execute("PRAGMA cell_size_check = ON"));
  MUSTER_CHECK(migrate_with_backup(database));
  MUSTER_CHECK(store->prepare_statements());
  store->spare_room_.reserve();
  return store;
}

Result<void> SqliteStore::prepare_statements() {
  auto all = std::make_unique<Statements>();
  const std::pair<SqliteStatement*, const char*> texts[] = {
      {&all->insert_job,
       "INSERT INTO job (id, project, name, idempotency_key, document, checksum, facts) "
       "VALUES (?1, ?2, ?3, nullif(?4, ''), ?5, ?6, nullif(?7, x''))"},
      {&all->update_job,
       "UPDATE job SET document = ?2, checksum = ?3, facts = nullif(?4, x'') WHERE id = ?1"},
      {&all->remove_job, "DELETE FROM job WHERE id = ?1"},
      {&all->find_job, "SELECT id FROM job WHERE idempotency_key = ?1"},
      {&all->put_object,
       "INSERT INTO object (kind, id, project, name, document, checksum) "
       "VALUES (?1, ?2, ?3, ?4, ?5, ?6) ON CONFLICT (kind, id) "
       "DO UPDATE SET document = ?5, checksum = ?6"},
      {&all->remove_object, "DELETE FROM object WHERE kind = ?1 AND id = ?2"},
      {&all->put_project,
       "INSERT OR REPLACE INTO project (name, sequence, document, checksum) "
       "VALUES (?1, ?2, ?3, ?4)"},
      {&all->remove_project, "DELETE FROM project WHERE name = ?1"},
      {&all->cordon,
       "INSERT OR REPLACE INTO node_setting (name, cordoned, checksum) VALUES (?1, 1, ?2)"},
      {&all->uncordon, "DELETE FROM node_setting WHERE name = ?1"},
      {&all->put_account,
       "INSERT OR REPLACE INTO account (name, document, checksum) VALUES (?1, ?2, ?3)"},
      {&all->remove_account, "DELETE FROM account WHERE name = ?1"},
      {&all->put_token,
       "INSERT OR REPLACE INTO token (id, document, checksum) VALUES (?1, ?2, ?3)"},
      {&all->remove_token, "DELETE FROM token WHERE id = ?1"},
      {&all->put_secret,
       "INSERT OR REPLACE INTO secret (project, name, document, checksum) VALUES (?1, ?2, ?3, ?4)"},
      {&all->remove_secret, "DELETE FROM secret WHERE project = ?1 AND name = ?2"},
      {&all->put_subscription,
       "INSERT OR REPLACE INTO subscription (id, document, checksum) VALUES (?1, ?2, ?3)"},
      {&all->remove_subscription, "DELETE FROM subscription WHERE id = ?1"},
      {&all->put_delivery,
       "INSERT OR REPLACE INTO delivery (id, document, checksum) VALUES (?1, ?2, ?3)"},
      {&all->remove_delivery, "DELETE FROM delivery WHERE id = ?1"},
      {&all->append_audit,
       "INSERT INTO audit (time, actor, project, action, document, checksum) "
       "VALUES (?1, ?2, ?3, ?4, ?5, ?6)"},
      {&all->begin, "BEGIN IMMEDIATE"},
      {&all->commit, "COMMIT"},
      {&all->rollback, "ROLLBACK"}};
  for (const auto& [statement, text] : texts) {
    MUSTER_TRY(*statement, database_.prepare(text));
  }
  statements_ = std::move(all);
  return {};
}

Result<Contents> SqliteStore::load() {
  Contents contents;
  MUSTER_TRY(const int64_t jobs, database_.number("SELECT count(*) FROM job"));
  contents.jobs.reserve(static_cast<size_t>(jobs));
  for (const RecordKind& kind : kRecordKinds) {
    MUSTER_CHECK(database_.each_row(kind.query(), [&](const SqliteStatement& row) -> Result<void> {
      take_record(kind, row.record(kind.key.size()), contents);
      return {};
    }));
  }
  return contents;
}

Result<Contents> SqliteStore::load_packed() {
  Contents contents;
  MUSTER_TRY(const int64_t jobs, database_.number("SELECT count(*) FROM job"));
  contents.stored.reserve(static_cast<size_t>(jobs));
  for (const RecordKind& kind : kRecordKinds) {
    const bool is_job = &kind == &job_kind();
    JobReader reader(contents);
    const std::string query = is_job ? packed_jobs_query() : kind.query();
    MUSTER_CHECK(database_.each_row(query, [&](const SqliteStatement& row) -> Result<void> {
      if (is_job) {
        reader.add(row.record(kind.key.size()));
      } else {
        take_record(kind, row.record(kind.key.size()), contents);
      }
      return {};
    }));
    reader.finish();
  }
  return contents;
}

namespace {

/// Changes that must be possible on a full disk: deletions of jobs, which make room, and changes by
/// which an administrator takes rights away (a login with an invitation, and a new user, look the
/// same). The removal of expired tokens has no audit record.
bool may_use_spare_room(const Batch& batch) {
  if (!batch.removed_jobs.empty()) return true;
  const bool may_take_rights = !batch.removed_tokens.empty() || !batch.removed_users.empty() ||
                               !batch.removed_secrets.empty() || !batch.users.empty();
  return may_take_rights && !batch.audit.empty();
}

}  // namespace

Result<void> SqliteStore::commit(const Batch& batch) {
  Result<void> done = try_to_commit(batch);
  if (!may_use_spare_room(batch)) return done;
  const bool is_full = !done && done.error().code == ErrorCode::kExhausted;
  if (is_full && spare_room_.release()) done = try_to_commit(batch);
  if (done) spare_room_.reserve();
  return done;
}

Result<void> SqliteStore::try_to_commit(const Batch& batch) {
  if (batch.empty()) return {};
  MUSTER_CHECK(statements_->begin.run());
  Result<void> done = write(batch);
  if (done) done = statements_->commit.run();
  if (done) return {};
  // If the disk is full or failing, SQLite has rolled back already, and this fails, which is fine.
  (void)statements_->rollback.run();
  return done;
}

Result<void> SqliteStore::write(const Batch& batch) {
  MUSTER_CHECK(write_jobs(batch));
  MUSTER_CHECK(write_objects(batch));
  MUSTER_CHECK(write_projects(batch));
  MUSTER_CHECK(write_notifications(batch));
  return write_accounts(batch);
}

Result<void> SqliteStore::write_jobs(const Batch& batch) {
  // Removals come first: a new record may have the name of a removed one.
  for (const std::string& id : batch.removed_jobs) {
    MUSTER_CHECK(statements_->remove_job.text(1, id).run());
  }
  for (const NewJob& job : batch.new_jobs) MUSTER_CHECK(insert(job));
  for (const Job* job : batch.changed_jobs) MUSTER_CHECK(update(*job, batch));
  return {};
}

Result<void> SqliteStore::write_objects(const Batch& batch) {
  for (const ObjectKey& key : batch.removed_objects) {
    MUSTER_CHECK(statements_->remove_object.text(1, key.kind).text(2, key.id).run());
  }
  for (const Object& object : batch.objects) {
    const Result<void> done = statements_->put_object.text(1, object.kind)
                                  .text(2, object.id)
                                  .text(3, object.project)
                                  .text(4, object.name)
                                  .blob(5, object.document)
                                  .number(6, checksum_of(object))
                                  .run();
    if (done) continue;
    return done.error().code == ErrorCode::kConflict ? object_is_taken(object) : done.error();
  }
  return {};
}

Result<void> SqliteStore::write_projects(const Batch& batch) {
  for (const std::string& name : batch.removed_projects) {
    MUSTER_CHECK(statements_->remove_project.text(1, name).run());
  }
  for (const job::Project& project : batch.projects) {
    const std::string document = to_document(project);
    MUSTER_CHECK(statements_->put_project.text(1, project.name)
                     .number(2, static_cast<int64_t>(project.sequence))
                     .blob(3, document)
                     .number(4, checksum_of(project, document))
                     .run());
  }
  for (const std::string& name : batch.uncordoned_nodes) {
    MUSTER_CHECK(statements_->uncordon.text(1, name).run());
  }
  for (const std::string& name : batch.cordoned_nodes) {
    MUSTER_CHECK(statements_->cordon.text(1, name).number(2, checksum_of_cordon(name)).run());
  }
  return {};
}

Result<void> SqliteStore::write_accounts(const Batch& batch) {
  Statements& all = *statements_;
  for (const std::string& name : batch.removed_users) {
    MUSTER_CHECK(all.remove_account.text(1, name).run());
  }
  for (const access::User& user : batch.users) {
    const std::string document = to_document(user);
    MUSTER_CHECK(all.put_account.text(1, user.name)
                     .blob(2, document)
                     .number(3, checksum_of({user.name, document}))
                     .run());
  }
  for (const std::string& id : batch.removed_tokens) {
    MUSTER_CHECK(all.remove_token.text(1, id).run());
  }
  for (const access::Token& token : batch.tokens) {
    const std::string document = to_document(token);
    MUSTER_CHECK(all.put_token.text(1, token.id)
                     .blob(2, document)
                     .number(3, checksum_of({token.id, document}))
                     .run());
  }
  for (const SecretName& secret : batch.removed_secrets) {
    MUSTER_CHECK(all.remove_secret.text(1, secret.project).text(2, secret.name).run());
  }
  for (const access::Secret& secret : batch.secrets) {
    const std::string document = to_document(secret);
    MUSTER_CHECK(all.put_secret.text(1, secret.project)
                     .text(2, secret.name)
                     .blob(3, document)
                     .number(4, checksum_of({secret.project, secret.name, document}))
                     .run());
  }
  for (const access::AuditRecord& record : batch.audit) MUSTER_CHECK(append(record));
  return {};
}

Result<void> SqliteStore::write_notifications(const Batch& batch) {
  Statements& all = *statements_;
  for (const std::string& id : batch.removed_subscriptions) {
    MUSTER_CHECK(all.remove_subscription.text(1, id).run());
  }
  for (const job::Subscription& each : batch.subscriptions) {
    const std::string document = to_document(each);
    MUSTER_CHECK(all.put_subscription.text(1, each.id)
                     .blob(2, document)
                     .number(3, checksum_of({each.id, document}))
                     .run());
  }
  for (const std::string& id : batch.removed_deliveries) {
    MUSTER_CHECK(all.remove_delivery.text(1, id).run());
  }
  for (const job::Delivery& each : batch.deliveries) {
    const std::string document = to_document(each);
    MUSTER_CHECK(all.put_delivery.text(1, each.id)
                     .blob(2, document)
                     .number(3, checksum_of({each.id, document}))
                     .run());
  }
  return {};
}

Result<void> SqliteStore::insert(const NewJob& job) {
  const std::string document = to_document(*job.job);
  const int64_t checksum = checksum_of(*job.job, document);
  const std::string facts = stored_facts(*job.job, checksum);
  Result<void> done = statements_->insert_job.text(1, job.job->id)
                          .text(2, job.job->spec.project)
                          .text(3, job.job->spec.name)
                          .text(4, job.idempotency_key)
                          .blob(5, document)
                          .number(6, checksum)
                          .blob(7, facts)
                          .run();
  if (done || done.error().code != ErrorCode::kConflict) return done;
  return job_is_taken(*job.job);
}

Result<void> SqliteStore::update(const Job& job, const Batch& batch) {
  const std::string document = to_document(job);
  if (batch.ended && job::is_final(job.phase)) batch.ended(job, document);
  const int64_t checksum = checksum_of(job, document);
  const std::string facts = stored_facts(job, checksum);
  MUSTER_CHECK(statements_->update_job.text(1, job.id)
                   .blob(2, document)
                   .number(3, checksum)
                   .blob(4, facts)
                   .run());
  if (sqlite3_changes(database_.raw()) == 0) return job_is_missing(job);
  return {};
}

Result<void> SqliteStore::append(const access::AuditRecord& record) {
  const std::string document = to_document(record);
  return statements_->append_audit.number(1, record.time.time_since_epoch().count())
      .text(2, record.actor.user)
      .text(3, record.project)
      .text(4, record.action)
      .blob(5, document)
      .number(6, checksum_of(record, document))
      .run();
}

Result<std::optional<std::string>> SqliteStore::find_by_key(const std::string& idempotency_key) {
  SqliteStatement& find = statements_->find_job;
  Result<bool> row = find.text(1, idempotency_key).step();
  std::optional<std::string> id;
  if (row && *row) id = find.bytes(0);
  find.reset();
  if (!row) return std::move(row).error();
  return id;
}

/// The recorded actions that `kind` matches: itself, and all that begin with it and '.'.
Result<std::vector<std::string>> SqliteStore::audit_actions(const std::string& kind) {
  MUSTER_TRY(SqliteStatement select, database_.prepare(audit_actions_query("?1")));
  select.text(1, kind);
  std::vector<std::string> actions;
  while (true) {
    MUSTER_TRY(const bool there, select.step());
    if (!there) return actions;
    actions.emplace_back(select.bytes(0));
  }
}

Result<std::vector<access::AuditRecord>> SqliteStore::audit(const access::AuditQuery& query) {
  std::string sql =
      "SELECT CAST(time AS TEXT), actor, project, action, document, checksum, number FROM audit"
      " WHERE number < ?1";
  if (query.user) sql += " AND actor = ?2";
  if (query.project) sql += " AND project = ?3";
  if (query.since) sql += " AND " + audit_since_condition("?4");
  const std::string order = " ORDER BY number DESC LIMIT ?5";
  constexpr int kFirstAction = 6;
  std::vector<std::string> actions;
  if (query.action) {
    MUSTER_TRY(actions, audit_actions(*query.action));
    if (actions.empty()) return std::vector<access::AuditRecord>();
    std::vector<std::string> newest;
    for (size_t i = 0; i < actions.size(); ++i) {
      newest.push_back(sql + " AND action = ?" +
                       std::to_string(kFirstAction + static_cast<int>(i)) + order);
    }
    sql = audit_of_actions(newest, order);
  } else {
    sql += order;
  }
  MUSTER_TRY(SqliteStatement select, database_.prepare(sql));
  constexpr uint64_t kLargest = std::numeric_limits<int64_t>::max();
  select.number(1, static_cast<int64_t>(std::min(query.before.value_or(kLargest), kLargest)));
  if (query.user) select.text(2, *query.user);
  if (query.project) select.text(3, *query.project);
  if (query.since) select.number(4, query.since->time_since_epoch().count());
  select.number(5, std::max(0, query.limit));
  for (size_t i = 0; i < actions.size(); ++i) {
    select.text(kFirstAction + static_cast<int>(i), actions[i]);
  }

  std::vector<access::AuditRecord> found;
  while (true) {
    MUSTER_TRY(const bool there, select.step());
    if (!there) return found;
    const RecordRow row = select.record(kAuditKind.key.size());
    found.push_back(read_audit_record(row, static_cast<uint64_t>(select.number(6))));
  }
}

Result<void> SqliteStore::ping() {
  // Takes the writer's lock, which fails on a read-only disk, but not on a full one.
  MUSTER_CHECK(statements_->begin.run());
  Result<void> read = database_.execute("SELECT count(*) FROM node_setting");
  (void)statements_->rollback.run();
  return read;
}

}  // namespace muster::store
