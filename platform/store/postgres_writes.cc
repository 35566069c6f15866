#include "store/postgres_writes.h"

#include <algorithm>
#include <span>
#include <string>
#include <utility>

#include "store/records.h"

namespace muster::store {

namespace {

// max() + 1: unlike a sequence, the numbers have no gaps after a rollback. Only the leader writes.
constexpr std::pair<const char*, const char*> kStatements[] = {
    {"fence", "UPDATE leader SET commit_number = $1::int8 WHERE generation = $2::int8"},
    {"insert_jobs",
     "INSERT INTO job (sequence, id, project, name, idempotency_key, document, checksum, facts)"
     " SELECT (SELECT coalesce(max(sequence), 0) FROM job) + new.place, new.id, new.project,"
     " new.name, nullif(new.key, ''::bytea), new.document, new.checksum,"
     " nullif(new.facts, ''::bytea)"
     " FROM unnest($1::text[], $2::text[], $3::text[], $4::bytea[], $5::bytea[], $6::int8[],"
     " $7::bytea[]) WITH ORDINALITY"
     " AS new (id, project, name, key, document, checksum, facts, place)"},
    {"update_job",
     "UPDATE job SET document = $2::bytea, checksum = $3::int8,"
     " facts = nullif($4::bytea, ''::bytea) WHERE id = $1::text"},
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
     " SELECT (SELECT coalesce(max(number), 0) FROM audit) + new.place, new.time, new.actor,"
     " new.project, new.action, new.document, new.checksum"
     " FROM unnest($1::int8[], $2::text[], $3::text[], $4::text[], $5::bytea[], $6::int8[])"
     " WITH ORDINALITY AS new (time, actor, project, action, document, checksum, place)"},
    {"last_audit", "SELECT coalesce(max(number), 0) FROM audit"}};

/// A table with records that change, how the rows of given keys are found in it, and the name of the
/// prepared statement that reads them.
struct ChangedTable {
  const char* table;
  const char* columns;
  const char* where;
  const char* read;
};
constexpr const char* kOfIds = "id = ANY($1::text[])";
constexpr const char* kOfNames = "name = ANY($1::text[])";
constexpr ChangedTable kJobs{
    "job", "sequence, id, project, name, idempotency_key, document, checksum, facts", kOfIds,
    "read_jobs"};
constexpr ChangedTable kObjects{"object", "kind, id, project, name, document, checksum",
                                "(kind, id) IN (SELECT * FROM unnest($1::text[], $2::text[]))",
                                "read_objects"};
constexpr ChangedTable kProjects{"project", "name, sequence, document, checksum", kOfNames,
                                 "read_projects"};
constexpr ChangedTable kNodes{"node_setting", "name, cordoned, checksum", kOfNames, "read_nodes"};
constexpr ChangedTable kAccounts{"account", "name, document, checksum", kOfNames, "read_accounts"};
constexpr ChangedTable kTokens{"token", "id, document, checksum", kOfIds, "read_tokens"};
constexpr ChangedTable kStoredSecrets{
    "secret", "project, name, document, checksum",
    "(project, name) IN (SELECT * FROM unnest($1::text[], $2::text[]))", "read_secrets"};
constexpr ChangedTable kSubscriptions{"subscription", "id, document, checksum", kOfIds,
                                      "read_subscriptions"};
constexpr ChangedTable kDeliveries{"delivery", "id, document, checksum", kOfIds, "read_deliveries"};

/// The keys that a batch touches in one table, and those of them that have rows before.
struct Touched {
  const ChangedTable& table;
  PostgresParameters keys;
  PostgresParameters existing;
};

Touched touched_in(const ChangedTable& table, const PostgresParameters& keys) {
  return {.table = table, .keys = keys, .existing = keys};
}

/// For a table whose records have one key.
Touched touched_in(const ChangedTable& table, std::vector<std::string> keys,
                   const std::vector<std::string>& removed) {
  keys.insert(keys.end(), removed.begin(), removed.end());
  return touched_in(table, PostgresParameters().texts(keys));
}

template <class Value>
std::vector<std::string> ids_of(const std::vector<Value>& values) {
  std::vector<std::string> ids;
  for (const Value& value : values) ids.push_back(value.id);
  return ids;
}

template <class Value>
std::vector<std::string> names_of(const std::vector<Value>& values) {
  std::vector<std::string> names;
  for (const Value& value : values) names.push_back(value.name);
  return names;
}

Touched touched_jobs(const Batch& batch) {
  std::vector<std::string> ids = batch.removed_jobs;
  for (const job::Job* job : batch.changed_jobs) ids.push_back(job->id);
  const PostgresParameters existing = PostgresParameters().texts(ids);
  for (const NewJob& job : batch.new_jobs) ids.push_back(job.job->id);
  return {.table = kJobs, .keys = PostgresParameters().texts(ids), .existing = existing};
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
  return touched_in(kObjects, PostgresParameters().texts(kinds).texts(ids));
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
  return touched_in(kStoredSecrets, PostgresParameters().texts(projects).texts(names));
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
    touched.push_back(touched_in(kProjects, names_of(batch.projects), batch.removed_projects));
  }
  if (!batch.cordoned_nodes.empty() || !batch.uncordoned_nodes.empty()) {
    touched.push_back(touched_in(kNodes, batch.cordoned_nodes, batch.uncordoned_nodes));
  }
  if (!batch.users.empty() || !batch.removed_users.empty()) {
    touched.push_back(touched_in(kAccounts, names_of(batch.users), batch.removed_users));
  }
  if (!batch.tokens.empty() || !batch.removed_tokens.empty()) {
    touched.push_back(touched_in(kTokens, ids_of(batch.tokens), batch.removed_tokens));
  }
  if (!batch.secrets.empty() || !batch.removed_secrets.empty()) {
    touched.push_back(touched_secrets(batch));
  }
  if (!batch.subscriptions.empty() || !batch.removed_subscriptions.empty()) {
    touched.push_back(
        touched_in(kSubscriptions, ids_of(batch.subscriptions), batch.removed_subscriptions));
  }
  if (!batch.deliveries.empty() || !batch.removed_deliveries.empty()) {
    touched.push_back(touched_in(kDeliveries, ids_of(batch.deliveries), batch.removed_deliveries));
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

std::string insert_again(const ChangedTable& table, int columns) {
  std::string values;
  for (int i = 1; i <= columns; ++i) values += (i == 1 ? "$" : ", $") + std::to_string(i);
  return std::string("INSERT INTO ") + table.table + " (" + table.columns + ") VALUES (" + values +
         ")";
}

PostgresParameters rows_of(std::span<const NewJob> jobs) {
  std::vector<std::string> ids;
  std::vector<std::string> projects;
  std::vector<std::string> names;
  std::vector<std::string> keys;
  std::vector<std::string> documents;
  std::vector<int64_t> checksums;
  std::vector<std::string> facts;
  for (const NewJob& job : jobs) {
    ids.push_back(job.job->id);
    projects.push_back(job.job->spec.project);
    names.push_back(job.job->spec.name);
    keys.push_back(job.idempotency_key);
    documents.push_back(to_document(*job.job));
    checksums.push_back(checksum_of(*job.job, documents.back()));
    facts.push_back(stored_facts(*job.job, checksums.back()));
  }
  return PostgresParameters()
      .texts(ids)
      .texts(projects)
      .texts(names)
      .byteas(keys)
      .byteas(documents)
      .numbers(checksums)
      .byteas(facts);
}

PostgresParameters rows_of(std::span<const access::AuditRecord> records) {
  std::vector<int64_t> times;
  std::vector<std::string> actors;
  std::vector<std::string> projects;
  std::vector<std::string> actions;
  std::vector<std::string> documents;
  std::vector<int64_t> checksums;
  for (const access::AuditRecord& record : records) {
    times.push_back(record.time.time_since_epoch().count());
    actors.push_back(record.actor.user);
    projects.push_back(record.project);
    actions.push_back(record.action);
    documents.push_back(to_document(record));
    checksums.push_back(checksum_of(record, documents.back()));
  }
  return PostgresParameters()
      .numbers(times)
      .texts(actors)
      .texts(projects)
      .texts(actions)
      .byteas(documents)
      .numbers(checksums);
}

/// Calls `write` with the values, at most `most` at a time.
template <class Value, class Write>
void in_pieces(const std::vector<Value>& values, size_t most, Write write) {
  for (size_t first = 0; first < values.size(); first += most) {
    write(std::span(values).subspan(first, std::min(most, values.size() - first)));
  }
}

void write_jobs(const Batch& batch, size_t most_rows, PostgresWrites& writes) {
  std::vector<PostgresStep>& steps = writes.steps;
  const auto add = [&](const char* name, PostgresParameters parameters) {
    steps.push_back({.statement = name, .parameters = std::move(parameters)});
  };
  // Removals come first: a new record may have the name of a removed one.
  for (const std::string& id : batch.removed_jobs) add("remove_job", PostgresParameters().text(id));
  in_pieces(batch.new_jobs, most_rows, [&](std::span<const NewJob> jobs) {
    PostgresWrites::Inserts& inserts = writes.inserts.emplace_back();
    inserts.step = steps.size();
    for (const NewJob& job : jobs) inserts.jobs.push_back(job.job);
    add("insert_jobs", rows_of(jobs));
  });
  for (const job::Job* job : batch.changed_jobs) {
    writes.updates.push_back({.step = steps.size(), .job = job});
    const std::string document = to_document(*job);
    if (batch.ended && job::is_final(job->phase)) batch.ended(*job, document);
    const int64_t checksum = checksum_of(*job, document);
    add("update_job", PostgresParameters().text(job->id).bytes(document).number(checksum).bytes(
                          stored_facts(*job, checksum)));
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
}

void write_audit(const Batch& batch, size_t most_rows, std::vector<PostgresStep>& steps) {
  in_pieces(batch.audit, most_rows, [&](std::span<const access::AuditRecord> records) {
    steps.push_back({.statement = "append_audit", .parameters = rows_of(records)});
  });
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

std::vector<PostgresConnection::Prepared> postgres_statements() {
  std::vector<PostgresConnection::Prepared> all;
  for (const auto& [name, sql] : kStatements) all.push_back({.name = name, .sql = sql});
  for (const ChangedTable* table : {&kJobs, &kObjects, &kProjects, &kNodes, &kAccounts, &kTokens,
                                    &kStoredSecrets, &kSubscriptions, &kDeliveries}) {
    all.push_back({.name = table->read,
                   .sql = std::string("SELECT ") + table->columns + " FROM " + table->table +
                          " WHERE " + table->where});
  }
  return all;
}

PostgresWrites writes_of(const Batch& batch, size_t most_rows) {
  PostgresWrites writes;
  write_jobs(batch, most_rows, writes);
  write_objects(batch, writes);
  write_projects(batch, writes.steps);
  write_notifications(batch, writes.steps);
  write_accounts(batch, writes.steps);
  write_audit(batch, most_rows, writes.steps);
  return writes;
}

std::vector<PostgresStep> reads_before(const Batch& batch) {
  std::vector<PostgresStep> steps;
  for (Touched& touched : touched_by(batch)) {
    steps.push_back({.statement = touched.table.read, .parameters = std::move(touched.existing)});
  }
  if (!batch.audit.empty()) steps.push_back({.statement = "last_audit", .parameters = {}});
  return steps;
}

std::vector<PostgresStep> undo_of(const Batch& batch, const std::vector<PostgresRows>& before) {
  std::vector<PostgresStep> steps;
  std::vector<Touched> all = touched_by(batch);
  for (size_t i = 0; i < all.size(); ++i) {
    const ChangedTable& table = all[i].table;
    const std::string insert = insert_again(table, before[i].columns());
    steps.push_back(
        {.statement = std::string("DELETE FROM ") + table.table + " WHERE " + table.where,
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
