#include "store/postgres_session.h"

#include "base/random.h"
#include "store/postgres_schema.h"
#include "store/records.h"
#include "store/store.h"

namespace muster::store {

using base::Error;
using base::ErrorCode;

namespace {

using SteadyClock = std::chrono::steady_clock;

std::string unique_name() {
  base::SystemRandom random;
  return "muster " + base::random_name(random, 16);
}

PostgresStep sql(std::string text) {
  return {.statement = std::move(text), .parameters = {}, .is_prepared = false};
}

}  // namespace

PostgresSession::PostgresSession(PostgresUrl url, std::filesystem::path backup_folder)
    : url_(std::move(url)), backup_folder_(std::move(backup_folder)), name_(unique_name()) {}

Error PostgresSession::leads_no_more() const {
  return {.code = ErrorCode::kRefused,
          .what = has_led_ ? "another server leads on the database " + url_.shown
                           : "this server does not lead on the database " + url_.shown,
          .advice = "send requests to the leader; this server waits for the lead"};
}

Result<void> PostgresSession::connect() {
  if (is_connected()) return {};
  connection_.reset();
  // Waiting for a dead server must not block everything else: after a failed attempt, the same time
  // is left for other work. (A refusal takes no time.)
  const auto start = SteadyClock::now();
  if (last_failure_ && start < next_attempt_) return *last_failure_;
  Result<void> done = connect_now();
  last_failure_.reset();
  if (done) return done;
  connection_.reset();
  const auto now = SteadyClock::now();
  if (now - start > std::chrono::seconds(2)) {
    last_failure_ = done.error();
    next_attempt_ = now + (now - start);
  }
  return done;
}

Result<void> PostgresSession::connect_now() {
  MUSTER_TRY(connection_, PostgresConnection::open(url_, name_));
  MUSTER_CHECK(migrate(*connection_, kPostgresMigrations, backup_folder_));
  MUSTER_CHECK(connection_->prepare(kPostgresStatements));
  return leads_ ? lead_again() : Result<void>();
}

/// It is not an error if this server no longer leads: it can still read.
Result<void> PostgresSession::lead_again() {
  MUSTER_TRY(const Lock lock, take_lock());
  if (lock == Lock::kTaken) {
    MUSTER_TRY(const PostgresRows leader, connection_->query("SELECT generation FROM leader"));
    if (leader.number(0, 0) == generation_) return {};
    MUSTER_CHECK(connection_->query(std::string("SELECT pg_advisory_unlock(") + kLeaderLock + ")"));
  }
  leads_ = false;
  unsettled_.reset();  // another server has led since, with the data that it found
  return {};
}

Result<PostgresSession::Lock> PostgresSession::take_lock() {
  for (int attempt = 0; attempt < 3; ++attempt) {
    MUSTER_TRY(const PostgresRows taken,
               connection_->query(std::string("SELECT pg_try_advisory_lock(") + kLeaderLock + ")"));
    if (taken.number(0, 0) == 1) return Lock::kTaken;
    MUSTER_TRY(const PostgresRows holders, connection_->query(kLeaderLockHolders));
    if (holders.size() == 0) continue;  // it was released just now
    if (holders.bytes(0, 1) != name_) return Lock::kHeldByOther;
    MUSTER_CHECK(end_own_session(holders.number(0, 0)));
  }
  return Error{.code = ErrorCode::kUnavailable,
               .what = "the database " + url_.shown + " has not released the leader's lock",
               .advice = "an earlier session of this server is still ending; try again"};
}

/// Ends an earlier session of this store whose lost connection the server has not noticed yet.
Result<void> PostgresSession::end_own_session(int64_t process) {
  constexpr int64_t kPatienceMs = 2'000;
  const auto ended = connection_->query("SELECT pg_terminate_backend($1::int8::int4, $2::int8)",
                                        PostgresParameters().number(process).number(kPatienceMs));
  if (!ended) return ended.error();
  return {};
}

Result<bool> PostgresSession::took_place() {
  MUSTER_TRY(const PostgresRows leader, connection_->query("SELECT commit_number FROM leader"));
  return leader.number(0, 0) == unsettled_->number;
}

Result<void> PostgresSession::ready() {
  MUSTER_CHECK(connect());
  if (!leads_ || !unsettled_) return {};
  MUSTER_TRY(const bool is_there, took_place());
  if (is_there) MUSTER_CHECK(undo());
  unsettled_.reset();
  return {};
}

Result<void> PostgresSession::undo() {
  std::vector<PostgresStep> steps;
  steps.push_back(sql("BEGIN ISOLATION LEVEL READ COMMITTED"));
  // Restores the former number of the row: if this COMMIT is lost, too, the number still shows it.
  steps.push_back({.statement = "fence",
                   .parameters = PostgresParameters().number(commit_number_).number(generation_)});
  steps.insert(steps.end(), unsettled_->undo.begin(), unsettled_->undo.end());
  steps.push_back(sql("COMMIT"));
  size_t failed = 0;
  const auto done = connection_->pipeline(steps, &failed);
  if (done) return {};
  if (is_connected()) (void)connection_->execute("ROLLBACK");
  return done.error();
}

Result<PostgresConnection*> PostgresSession::reader() {
  MUSTER_CHECK(ready());
  return connection_.get();
}

Result<void> PostgresSession::commit(const Batch& batch) {
  MUSTER_CHECK(ready());
  Result<void> done;
  for (int attempt = 0; attempt < 2; ++attempt) {
    if (!leads_) return leads_no_more();
    done = try_commit(batch);
    if (done || is_connected()) return done;
    // The connection was lost. If another can be opened at once, callers do not notice.
    MUSTER_CHECK(connect());
    if (!unsettled_) continue;
    MUSTER_TRY(const bool is_there, took_place());
    const int64_t number = unsettled_->number;
    unsettled_.reset();
    if (!is_there) continue;
    commit_number_ = number;
    return {};
  }
  return done;
}

/// Sets `unsettled_` only if the connection is lost during COMMIT.
Result<void> PostgresSession::try_commit(const Batch& batch) {
  std::vector<PostgresStep> undo;
  Result<void> done = write(batch, undo);
  if (!done) {
    if (is_connected()) MUSTER_CHECK(connection_->execute("ROLLBACK"));
    return done;
  }
  done = connection_->execute("COMMIT");
  if (done) {
    ++commit_number_;
  } else if (!is_connected()) {
    unsettled_ = {.number = commit_number_ + 1, .undo = std::move(undo)};
  }
  return done;
}

/// Everything except COMMIT, in one round trip.
Result<void> PostgresSession::write(const Batch& batch, std::vector<PostgresStep>& undo) {
  std::vector<PostgresStep> steps;
  steps.push_back(sql("BEGIN ISOLATION LEVEL READ COMMITTED"));
  steps.push_back(
      {.statement = "fence",
       .parameters = PostgresParameters().number(commit_number_ + 1).number(generation_)});
  const size_t first_read = steps.size();
  for (PostgresStep& read : reads_before(batch)) steps.push_back(std::move(read));
  const size_t first_write = steps.size();
  PostgresWrites writes = writes_of(batch);
  for (PostgresStep& write : writes.steps) steps.push_back(std::move(write));

  size_t failed = 0;
  auto answers = connection_->pipeline(steps, &failed);
  if (!answers) {
    if (answers.error().code != ErrorCode::kConflict) return answers.error();
    for (const auto& [step, job] : writes.inserts) {
      if (first_write + step == failed) return job_is_taken(*job);
    }
    for (const auto& [step, object] : writes.objects) {
      if (first_write + step == failed) return object_is_taken(*object);
    }
    return answers.error();
  }
  if ((*answers)[1].changed() != 1) {
    leads_ = false;
    return leads_no_more();
  }
  for (const auto& [step, job] : writes.updates) {
    if ((*answers)[first_write + step].changed() == 0) return job_is_missing(*job);
  }
  answers->erase(answers->begin() + static_cast<std::ptrdiff_t>(first_write), answers->end());
  answers->erase(answers->begin(), answers->begin() + static_cast<std::ptrdiff_t>(first_read));
  undo = undo_of(batch, *answers);
  return {};
}

Result<bool> PostgresSession::try_to_lead(const std::string& address) {
  MUSTER_CHECK(ready());
  if (leads_) return true;
  Result<bool> done = lead(address);
  if (done || is_connected()) return done;
  MUSTER_CHECK(ready());  // the loss of the connection may be noticed only now
  return lead(address);
}

Result<bool> PostgresSession::lead(const std::string& address) {
  MUSTER_TRY(const Lock lock, take_lock());
  if (lock == Lock::kHeldByOther) return false;
  Result<PostgresRows> leader = connection_->query(
      "UPDATE leader SET address = $1::text, generation = generation + 1"
      " RETURNING generation, commit_number",
      PostgresParameters().text(address));
  if (!leader) {
    connection_.reset();  // and with it the lock
    return leader.error();
  }
  generation_ = leader->number(0, 0);
  commit_number_ = leader->number(0, 1);
  leads_ = has_led_ = true;
  return true;
}

namespace {

// max() + 1: unlike a sequence, the numbers have no gaps after a rollback. Only the leader writes.
constexpr PostgresConnection::Prepared kStatements[] = {
    {"fence", "UPDATE leader SET commit_number = $1::int8 WHERE generation = $2::int8"},
    {"insert_job",
     "INSERT INTO job (sequence, id, project, name, idempotency_key, document, checksum)"
     " SELECT coalesce(max(sequence), 0) + 1, $1::text, $2::text, $3::text,"
     " nullif($4::bytea, ''::bytea), $5::bytea, $6::int8 FROM job"},
    {"update_job", "UPDATE job SET document = $2::bytea, checksum = $3::int8 WHERE id = $1::text"},
    {"remove_job", "DELETE FROM job WHERE id = $1::text"},
    {"put_object",
     "INSERT INTO object (kind, id, project, name, document, checksum)"
     " VALUES ($1::text, $2::text, $3::text, $4::text, $5::bytea, $6::int8)"
     " ON CONFLICT (kind, id) DO UPDATE SET document = $5::bytea, checksum = $6::int8"},
    {"remove_object", "DELETE FROM object WHERE kind = $1::text AND id = $2::text"},
    {"put_project",
     "INSERT INTO project (name, sequence, document, checksum)"
     " VALUES ($1::text, $2::int8, $3::bytea, $4::int8) ON CONFLICT (name)"
     " DO UPDATE SET sequence = $2::int8, document = $3::bytea, checksum = $4::int8"},
    {"remove_project", "DELETE FROM project WHERE name = $1::text"},
    {"cordon",
     "INSERT INTO node_setting (name, cordoned, checksum) VALUES ($1::text, 1, $2::int8)"
     " ON CONFLICT (name) DO UPDATE SET cordoned = 1, checksum = $2::int8"},
    {"uncordon", "DELETE FROM node_setting WHERE name = $1::text"},
    {"put_account",
     "INSERT INTO account (name, document, checksum) VALUES ($1::text, $2::bytea, $3::int8)"
     " ON CONFLICT (name) DO UPDATE SET document = $2::bytea, checksum = $3::int8"},
    {"remove_account", "DELETE FROM account WHERE name = $1::text"},
    {"put_token",
     "INSERT INTO token (id, document, checksum) VALUES ($1::text, $2::bytea, $3::int8)"
     " ON CONFLICT (id) DO UPDATE SET document = $2::bytea, checksum = $3::int8"},
    {"remove_token", "DELETE FROM token WHERE id = $1::text"},
    {"put_secret",
     "INSERT INTO secret (project, name, document, checksum)"
     " VALUES ($1::text, $2::text, $3::bytea, $4::int8)"
     " ON CONFLICT (project, name) DO UPDATE SET document = $3::bytea, checksum = $4::int8"},
    {"remove_secret", "DELETE FROM secret WHERE project = $1::text AND name = $2::text"},
    {"put_subscription",
     "INSERT INTO subscription (id, document, checksum) VALUES ($1::text, $2::bytea, $3::int8)"
     " ON CONFLICT (id) DO UPDATE SET document = $2::bytea, checksum = $3::int8"},
    {"remove_subscription", "DELETE FROM subscription WHERE id = $1::text"},
    {"put_delivery",
     "INSERT INTO delivery (id, document, checksum) VALUES ($1::text, $2::bytea, $3::int8)"
     " ON CONFLICT (id) DO UPDATE SET document = $2::bytea, checksum = $3::int8"},
    {"remove_delivery", "DELETE FROM delivery WHERE id = $1::text"},
    {"append_audit",
     "INSERT INTO audit (number, time, actor, project, action, document, checksum)"
     " SELECT coalesce(max(number), 0) + 1, $1::int8, $2::text, $3::text, $4::text, $5::bytea,"
     " $6::int8 FROM audit"}};

/// The keys that a batch touches in one table.
struct Touched {
  const char* table;
  const char* columns;
  const char* where;
  PostgresParameters keys;
};

PostgresParameters keys_of(std::vector<std::string> one, const std::vector<std::string>& other) {
  one.insert(one.end(), other.begin(), other.end());
  return PostgresParameters().texts(one);
}

Touched touched_jobs(const Batch& batch) {
  std::vector<std::string> ids = batch.removed_jobs;
  for (const NewJob& job : batch.new_jobs) ids.push_back(job.job->id);
  for (const job::Job* job : batch.changed_jobs) ids.push_back(job->id);
  return {"job", "sequence, id, project, name, idempotency_key, document, checksum",
          "id = ANY($1::text[])", PostgresParameters().texts(ids)};
}

Touched touched_objects(const Batch& batch) {
  std::vector<std::string> kinds;
  std::vector<std::string> ids;
  for (const Object& object : batch.objects) {
    kinds.push_back(object.kind);
    ids.push_back(object.id);
  }
  for (const ObjectKey& key : batch.removed_objects) {
    kinds.push_back(key.kind);
    ids.push_back(key.id);
  }
  return {"object", "kind, id, project, name, document, checksum",
          "(kind, id) IN (SELECT * FROM unnest($1::text[], $2::text[]))",
          PostgresParameters().texts(kinds).texts(ids)};
}

Touched touched_projects(const Batch& batch) {
  std::vector<std::string> names;
  for (const job::Project& project : batch.projects) names.push_back(project.name);
  return {"project", "name, sequence, document, checksum", "name = ANY($1::text[])",
          keys_of(std::move(names), batch.removed_projects)};
}

Touched touched_accounts(const Batch& batch) {
  std::vector<std::string> names;
  for (const access::User& user : batch.users) names.push_back(user.name);
  return {"account", "name, document, checksum", "name = ANY($1::text[])",
          keys_of(std::move(names), batch.removed_users)};
}

Touched touched_tokens(const Batch& batch) {
  std::vector<std::string> ids;
  for (const access::Token& token : batch.tokens) ids.push_back(token.id);
  return {"token", "id, document, checksum", "id = ANY($1::text[])",
          keys_of(std::move(ids), batch.removed_tokens)};
}

Touched touched_secrets(const Batch& batch) {
  std::vector<std::string> projects;
  std::vector<std::string> names;
  for (const access::Secret& secret : batch.secrets) {
    projects.push_back(secret.project);
    names.push_back(secret.name);
  }
  for (const SecretName& secret : batch.removed_secrets) {
    projects.push_back(secret.project);
    names.push_back(secret.name);
  }
  return {"secret", "project, name, document, checksum",
          "(project, name) IN (SELECT * FROM unnest($1::text[], $2::text[]))",
          PostgresParameters().texts(projects).texts(names)};
}

/// For a table whose rows are an id and a document.
template <class Value>
Touched touched_ids(const char* table, const std::vector<Value>& values,
                    const std::vector<std::string>& removed) {
  std::vector<std::string> ids;
  for (const Value& value : values) ids.push_back(value.id);
  return {table, "id, document, checksum", "id = ANY($1::text[])",
          keys_of(std::move(ids), removed)};
}

std::vector<Touched> touched_by(const Batch& batch) {
  std::vector<Touched> touched;
  if (!batch.new_jobs.empty() || !batch.changed_jobs.empty() || !batch.removed_jobs.empty()) {
    touched.push_back(touched_jobs(batch));
  }
  if (!batch.objects.empty() || !batch.removed_objects.empty()) {
    touched.push_back(touched_objects(batch));
  }
  if (!batch.projects.empty() || !batch.removed_projects.empty()) {
    touched.push_back(touched_projects(batch));
  }
  if (!batch.cordoned_nodes.empty() || !batch.uncordoned_nodes.empty()) {
    touched.push_back({"node_setting", "name, cordoned, checksum", "name = ANY($1::text[])",
                       keys_of(batch.cordoned_nodes, batch.uncordoned_nodes)});
  }
  if (!batch.users.empty() || !batch.removed_users.empty()) {
    touched.push_back(touched_accounts(batch));
  }
  if (!batch.tokens.empty() || !batch.removed_tokens.empty()) {
    touched.push_back(touched_tokens(batch));
  }
  if (!batch.secrets.empty() || !batch.removed_secrets.empty()) {
    touched.push_back(touched_secrets(batch));
  }
  if (!batch.subscriptions.empty() || !batch.removed_subscriptions.empty()) {
    touched.push_back(
        touched_ids("subscription", batch.subscriptions, batch.removed_subscriptions));
  }
  if (!batch.deliveries.empty() || !batch.removed_deliveries.empty()) {
    touched.push_back(touched_ids("delivery", batch.deliveries, batch.removed_deliveries));
  }
  return touched;
}

PostgresParameters row_of(const PostgresRows& rows, int row) {
  PostgresParameters parameters;
  for (int column = 0; column < rows.columns(); ++column) {
    if (rows.is_null(row, column)) {
      parameters.null();
    } else {
      parameters.bytes(rows.bytes(row, column));
    }
  }
  return parameters;
}

std::string insert_again(const Touched& touched, int columns) {
  std::string values;
  for (int i = 1; i <= columns; ++i) values += (i == 1 ? "$" : ", $") + std::to_string(i);
  return std::string("INSERT INTO ") + touched.table + " (" + touched.columns + ") VALUES (" +
         values + ")";
}

void write_jobs(const Batch& batch, PostgresWrites& writes) {
  std::vector<PostgresStep>& steps = writes.steps;
  const auto add = [&](const char* name, PostgresParameters parameters) {
    steps.push_back({.statement = name, .parameters = std::move(parameters)});
  };
  // Removals come first: a new record may have the name of a removed one.
  for (const std::string& id : batch.removed_jobs) add("remove_job", PostgresParameters().text(id));
  for (const NewJob& job : batch.new_jobs) {
    writes.inserts.push_back({.step = steps.size(), .job = job.job});
    const std::string document = to_document(*job.job);
    add("insert_job", PostgresParameters()
                          .text(job.job->id)
                          .text(job.job->spec.project)
                          .text(job.job->spec.name)
                          .bytes(job.idempotency_key)
                          .bytes(document)
                          .number(checksum_of(*job.job, document)));
  }
  for (const job::Job* job : batch.changed_jobs) {
    writes.updates.push_back({.step = steps.size(), .job = job});
    const std::string document = to_document(*job);
    add("update_job",
        PostgresParameters().text(job->id).bytes(document).number(checksum_of(*job, document)));
  }
}

void write_objects(const Batch& batch, PostgresWrites& writes) {
  std::vector<PostgresStep>& steps = writes.steps;
  for (const ObjectKey& key : batch.removed_objects) {
    steps.push_back({.statement = "remove_object",
                     .parameters = PostgresParameters().text(key.kind).text(key.id)});
  }
  for (const Object& object : batch.objects) {
    writes.objects.push_back({.step = steps.size(), .object = &object});
    steps.push_back({.statement = "put_object",
                     .parameters = PostgresParameters()
                                       .text(object.kind)
                                       .text(object.id)
                                       .text(object.project)
                                       .text(object.name)
                                       .bytes(object.document)
                                       .number(checksum_of(object))});
  }
}

void write_projects(const Batch& batch, std::vector<PostgresStep>& steps) {
  const auto add = [&](const char* name, PostgresParameters parameters) {
    steps.push_back({.statement = name, .parameters = std::move(parameters)});
  };
  for (const std::string& name : batch.removed_projects) {
    add("remove_project", PostgresParameters().text(name));
  }
  for (const job::Project& project : batch.projects) {
    const std::string document = to_document(project);
    add("put_project", PostgresParameters()
                           .text(project.name)
                           .number(static_cast<int64_t>(project.sequence))
                           .bytes(document)
                           .number(checksum_of(project, document)));
  }
  for (const std::string& name : batch.uncordoned_nodes) {
    add("uncordon", PostgresParameters().text(name));
  }
  for (const std::string& name : batch.cordoned_nodes) {
    add("cordon", PostgresParameters().text(name).number(checksum_of_cordon(name)));
  }
}

void write_accounts(const Batch& batch, std::vector<PostgresStep>& steps) {
  const auto add = [&](const char* name, PostgresParameters parameters) {
    steps.push_back({.statement = name, .parameters = std::move(parameters)});
  };
  for (const std::string& name : batch.removed_users) {
    add("remove_account", PostgresParameters().text(name));
  }
  for (const access::User& user : batch.users) {
    const std::string document = to_document(user);
    add("put_account", PostgresParameters().text(user.name).bytes(document).number(
                           checksum_of({user.name, document})));
  }
  for (const std::string& id : batch.removed_tokens) {
    add("remove_token", PostgresParameters().text(id));
  }
  for (const access::Token& token : batch.tokens) {
    const std::string document = to_document(token);
    add("put_token", PostgresParameters().text(token.id).bytes(document).number(
                         checksum_of({token.id, document})));
  }
  for (const SecretName& secret : batch.removed_secrets) {
    add("remove_secret", PostgresParameters().text(secret.project).text(secret.name));
  }
  for (const access::Secret& secret : batch.secrets) {
    const std::string document = to_document(secret);
    add("put_secret", PostgresParameters()
                          .text(secret.project)
                          .text(secret.name)
                          .bytes(document)
                          .number(checksum_of({secret.project, secret.name, document})));
  }
  for (const access::AuditRecord& record : batch.audit) {
    const std::string document = to_document(record);
    add("append_audit", PostgresParameters()
                            .number(record.time.time_since_epoch().count())
                            .text(record.actor.user)
                            .text(record.project)
                            .text(record.action)
                            .bytes(document)
                            .number(checksum_of(record, document)));
  }
}

void write_notifications(const Batch& batch, std::vector<PostgresStep>& steps) {
  const auto add = [&](const char* name, PostgresParameters parameters) {
    steps.push_back({.statement = name, .parameters = std::move(parameters)});
  };
  for (const std::string& id : batch.removed_subscriptions) {
    add("remove_subscription", PostgresParameters().text(id));
  }
  for (const job::Subscription& each : batch.subscriptions) {
    const std::string document = to_document(each);
    add("put_subscription", PostgresParameters().text(each.id).bytes(document).number(
                                checksum_of({each.id, document})));
  }
  for (const std::string& id : batch.removed_deliveries) {
    add("remove_delivery", PostgresParameters().text(id));
  }
  for (const job::Delivery& each : batch.deliveries) {
    const std::string document = to_document(each);
    add("put_delivery", PostgresParameters().text(each.id).bytes(document).number(
                            checksum_of({each.id, document})));
  }
}

}  // namespace

const std::span<const PostgresConnection::Prepared> kPostgresStatements(kStatements);

PostgresWrites writes_of(const Batch& batch) {
  PostgresWrites writes;
  write_jobs(batch, writes);
  write_objects(batch, writes);
  write_projects(batch, writes.steps);
  write_notifications(batch, writes.steps);
  write_accounts(batch, writes.steps);
  return writes;
}

std::vector<PostgresStep> reads_before(const Batch& batch) {
  std::vector<PostgresStep> steps;
  for (Touched& touched : touched_by(batch)) {
    steps.push_back({.statement = std::string("SELECT ") + touched.columns + " FROM " +
                                  touched.table + " WHERE " + touched.where,
                     .parameters = std::move(touched.keys),
                     .is_prepared = false});
  }
  if (!batch.audit.empty()) {
    steps.push_back({.statement = "SELECT coalesce(max(number), 0) FROM audit",
                     .parameters = {},
                     .is_prepared = false});
  }
  return steps;
}

std::vector<PostgresStep> undo_of(const Batch& batch, const std::vector<PostgresRows>& before) {
  std::vector<PostgresStep> steps;
  std::vector<Touched> all = touched_by(batch);
  for (size_t i = 0; i < all.size(); ++i) {
    const std::string insert = insert_again(all[i], before[i].columns());
    steps.push_back(
        {.statement = std::string("DELETE FROM ") + all[i].table + " WHERE " + all[i].where,
         .parameters = std::move(all[i].keys),
         .is_prepared = false});
    for (int row = 0; row < before[i].size(); ++row) {
      steps.push_back(
          {.statement = insert, .parameters = row_of(before[i], row), .is_prepared = false});
    }
  }
  if (!batch.audit.empty()) {
    steps.push_back({.statement = "DELETE FROM audit WHERE number > $1::int8",
                     .parameters = PostgresParameters().number(before.back().number(0, 0)),
                     .is_prepared = false});
  }
  return steps;
}

}  // namespace muster::store
