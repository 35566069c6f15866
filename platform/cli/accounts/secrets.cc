// secret and audit: secrets of a project, and the log of changes.
#include <unistd.h>

#include <limits>

#include "api/account_wire.h"
#include "base/files.h"
#include "cli/accounts/accounts.h"
#include "cli/command/command.h"
#include "cli/common/output.h"
#include "cli/common/terminal.h"
#include "cli/common/typed_input.h"
#include "cli/connection/connection.h"

namespace muster::cli::accounts {

namespace {

Call read_secret_set(Reading& in) {
  return SecretSetCommand{.project = in.project_meant(),
                          .name = in.name("secret"),
                          .file = in.absolute_path("--from-file")};
}

Call read_secret_list(Reading& in) {
  return SecretListCommand{.project = in.project_meant(), .output = in.list_output()};
}

Call read_secret_delete(Reading& in) {
  return SecretDeleteCommand{.project = in.project_meant(),
                             .names = in.names("secret"),
                             .ignore_missing = in.reader.has("--ignore-missing")};
}

Call read_audit(Reading& in) {
  AuditCommand command{.query = {}, .output = in.output()};
  if (in.reader.has("--user")) command.query.user = in.reader.text("--user");
  if (in.reader.has("--project")) command.query.project = in.reader.text("--project");
  if (in.reader.has("--action")) command.query.action = in.reader.text("--action");
  command.query.since = in.reader.moment("--since", in.caller.now);
  command.query.limit = in.reader.number_between("--limit", command.query.limit, 0);
  if (command.query.limit == 0) command.query.limit = std::numeric_limits<int>::max();
  return command;
}

Flags secret_project_flag() {
  return {{.name = "--project",
           .value = "PROJECT",
           .help = "project that owns the secret (default: the project in use)",
           .offer = Offer::kProjects}};
}

}  // namespace

Command secret_command() {
  return {.name = "secret",
          .help = "encrypted values for the jobs of a project: set, list, delete",
          .commands = {
              {.name = "set",
               .help = "store a secret; the value comes from a prompt, standard input or a file",
               .read = read_secret_set,
               .positionals = new_name(),
               .flags = secret_project_flag() + Flags{{.name = "--from-file",
                                                       .value = "FILE",
                                                       .help = "read the value from this file",
                                                       .offer = Offer::kFiles}},
               .example = "muster secret set API_KEY --project team-a < key.txt"},
              {.name = "list",
               .alias = "ls",
               .help = "list the names of a project's secrets, who set each, and when",
               .read = read_secret_list,
               .flags = secret_project_flag() + list_output_flag(),
               .example = "muster secret list --project team-a"},
              {.name = "delete",
               .alias = "rm",
               .help = "delete secrets",
               .read = read_secret_delete,
               .positionals = {.name = "NAME", .least = 1, .most = some_of(Offer::kNothing).most},
               .flags = secret_project_flag() + ignore_missing_flag("a secret"),
               .example = "muster secret delete API_KEY"},
          }};
}

Command audit_command() {
  return {
      .name = "audit",
      .help = "list changes: who changed what, when and from where; newest first",
      .read = read_audit,
      .flags = Flags{{.name = "--user",
                      .value = "USER",
                      .help = "only changes by this user",
                      .offer = Offer::kUsers},
                     {.name = "--project",
                      .value = "PROJECT",
                      .help = "only changes in this project",
                      .offer = Offer::kProjects},
                     {.name = "--action",
                      .value = "ACTION",
                      .help = "only this action (job.submit) or kind of action (job)"},
                     {.name = "--since",
                      .value = "TIME",
                      .help = "only entries after this time: 10m (ago), or 2026-01-31T12:00:00Z"},
                     {.name = "--limit",
                      .value = "N",
                      .help = "maximum number of entries (default: 100; 0: all)"}} +
               output_flag(),
      .example = "muster audit --user ada --since 1d"};
}

namespace {

constexpr size_t kMostSecretBytes = 64 << 10;

/// The bytes of a file are used as they are. From a pipe, one newline at the end is removed.
/// Nothing: Ctrl-C.
Result<std::optional<std::string>> secret_value(const SecretSetCommand& command) {
  if (!command.file.empty()) {
    auto text = base::read_file(command.file, kMostSecretBytes);
    if (text) return std::optional(*std::move(text));
    base::Error error = std::move(text).error();
    error.code = base::ErrorCode::kInvalid;  // kNotFound would mean that the project is missing
    return error;
  }
  if (::isatty(STDIN_FILENO) == 1) {
    Interrupts interrupts;
    return ask(STDIN_FILENO, "value of " + safe_lines(command.name) + " (not shown): ", Echo::kOff,
               interrupts);
  }
  MUSTER_TRY(std::string text, read_to_end(STDIN_FILENO, kMostSecretBytes));
  return std::optional(without_last_newline(std::move(text)));
}

/// Up to `query.limit` records, page by page.
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

}  // namespace muster::cli::accounts
