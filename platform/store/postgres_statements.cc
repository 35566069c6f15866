#include "store/postgres_statements.h"

#include "store/document.h"
#include "store/records.h"

namespace muster::store {

namespace {

// max() + 1: the numbers have no gaps, which those of a sequence would have after each rollback.
// Nobody else writes meanwhile: there is one leader.
constexpr PostgresConnection::Prepared kStatements[] = {
    {"fence", "UPDATE leader SET commit_number = $1::int8 WHERE generation = $2::int8"},
    {"insert_job",
     "INSERT INTO job (sequence, id, project, name, idempotency_key, document, checksum)"
     " SELECT coalesce(max(sequence), 0) + 1, $1::text, $2::text, $3::text,"
     " nullif($4::bytea, ''::bytea), $5::bytea, $6::int8 FROM job"},
    {"update_job", "UPDATE job SET document = $2::bytea, checksum = $3::int8 WHERE id = $1::text"},
    {"remove_job", "DELETE FROM job WHERE id = $1::text"},
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

/// Of a table whose rows are an id and a document.
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
  // What goes makes room first: a name may be given anew.
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
