// secret and audit: what is kept from eyes, and who changed what.
#include <unistd.h>

#include "api/account_wire.h"
#include "base/files.h"
#include "cli/account_view.h"
#include "cli/commands.h"
#include "cli/interrupts.h"
#include "cli/report.h"
#include "cli/terminal.h"
#include "cli/typed_input.h"

namespace muster::cli {

namespace {

constexpr size_t kMostSecretBytes = 64 << 10;

/// A file is taken as it is; of what comes through a pipe, a last newline is the pipe's. Nothing:
/// Ctrl-C.
Result<std::optional<std::string>> secret_value(const SecretSetCommand& command) {
  if (!command.file.empty()) {
    auto text = base::read_file(command.file, kMostSecretBytes);
    if (text) return std::optional(*std::move(text));
    base::Error error = std::move(text).error();
    error.code = base::ErrorCode::kInvalid;  // kNotFound would say that the project is missing
    return error;
  }
  if (::isatty(STDIN_FILENO) == 1) {
    Interrupts interrupts;
    return ask(STDIN_FILENO,
               "value of " + safe_lines(command.name) + " (it is not shown): ", Echo::kOff,
               interrupts);
  }
  MUSTER_TRY(std::string text, read_to_end(STDIN_FILENO, kMostSecretBytes));
  return std::optional(without_last_newline(std::move(text)));
}

/// As many as were asked for, a page at a time.
Result<std::vector<access::AuditRecord>> fetch_audit_records(Connection& connection,
                                                             access::AuditQuery query) {
  constexpr int kPage = 500;
  std::vector<access::AuditRecord> records;
  int left = query.limit;
  while (left > 0) {
    query.limit = std::min(left, kPage);
    MUSTER_TRY(const std::vector<access::AuditRecord> page,
               connection.call([&](api::Client& client) { return client.audit(query); }));
    records.insert(records.end(), page.begin(), page.end());
    if (std::cmp_less(page.size(), query.limit)) break;
    left -= static_cast<int>(page.size());
    query.before = page.back().number;
  }
  return records;
}

}  // namespace

Result<int> execute(const SecretSetCommand& command, const Hooks& hooks) {
  MUSTER_TRY(const auto value, secret_value(command));
  if (!value) return kExitInterrupted;
  if (value->empty()) {
    return base::Error{.code = base::ErrorCode::kInvalid,
                       .what = "the value is empty",
                       .advice = "to remove a secret: muster secret delete " + command.name};
  }
  MUSTER_TRY(Connection connection, connect(hooks));
  MUSTER_TRY(const access::Secret secret, connection.call([&](api::Client& client) {
    return client.set_secret(command.project, command.name, *value);
  }));
  MUSTER_CHECK(show("set " + secret.name + " of " + command.project + "\n"));
  return kExitDone;
}

Result<int> execute(const SecretListCommand& command, const Hooks& hooks) {
  MUSTER_TRY(Connection connection, connect(hooks));
  MUSTER_TRY(const std::vector<access::Secret> secrets,
             connection.call([&](api::Client& client) { return client.secrets(command.project); }));
  std::string names;
  for (const access::Secret& secret : secrets) names += secret.name + "\n";
  MUSTER_CHECK(show(command.output,
                    command.output == Output::kNames ? names : secret_table(secrets),
                    api::secrets_to_json(secrets)));
  return kExitDone;
}

Result<int> execute(const SecretDeleteCommand& command, const Hooks& hooks) {
  MUSTER_TRY(Connection connection, connect(hooks));
  return delete_each(command.names, command.ignore_missing, [&](const std::string& name) {
    return connection.client().remove_secret(command.project, name);
  });
}

Result<int> execute(const AuditCommand& command, const Hooks& hooks) {
  MUSTER_TRY(Connection connection, connect(hooks));
  MUSTER_TRY(const std::vector<access::AuditRecord> records,
             fetch_audit_records(connection, command.query));
  MUSTER_CHECK(show(command.output, audit_table(records), api::audit_to_json(records)));
  return kExitDone;
}

}  // namespace muster::cli
