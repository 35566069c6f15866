// Secrets: sealed as soon as they come, opened when a job starts.
#include "control/accounts.h"
#include "control/unknown_name.h"
#include "job/validate.h"

namespace muster::control {

using access::Actor;
using access::Secret;
using base::Error;
using base::ErrorCode;
using base::Fault;

namespace {

constexpr size_t kLargestValue = 64 * 1024;

std::vector<Fault> secret_faults(const std::string& name, std::string_view value) {
  std::vector<Fault> faults;
  if (!job::is_secret_name(name)) {
    faults.push_back({"name",
                      "is not the name of a secret; use at most 128 letters, digits and "
                      "'_', and no digit first"});
  }
  if (value.empty()) faults.push_back({"value", "is empty"});
  if (value.size() > kLargestValue) faults.push_back({"value", "is larger than 64 KiB"});
  return faults;
}

}  // namespace

std::vector<Secret> Accounts::secrets(const std::string& project) const {
  std::vector<Secret> secrets;
  for (auto next = secrets_.lower_bound({project, ""});
       next != secrets_.end() && next->first.project == project; ++next) {
    secrets.push_back(next->second);
  }
  return secrets;
}

Result<Secret> Accounts::set_secret(const std::string& project, const std::string& name,
                                    std::string_view value, const Actor& by) {
  if (auto faults = secret_faults(name, value); !faults.empty()) {
    return Error{.code = ErrorCode::kInvalid,
                 .what = "the secret cannot be kept as it is",
                 .faults = std::move(faults)};
  }
  const base::Time now = parts_.clock.now();
  Secret secret{.project = project,
                .name = name,
                .sealed = parts_.box.seal(value, project, name, parts_.random),
                .created = now,
                .changed = now,
                .changed_by = by.user};
  const auto known = secrets_.find({project, name});
  if (known != secrets_.end()) secret.created = known->second.created;
  MUSTER_CHECK(keep({.secrets = {secret}, .audit = {record(by, "secret.set", name, {}, project)}}));
  secrets_[{project, name}] = secret;
  return secret;
}

Result<void> Accounts::remove_secret(const std::string& project, const std::string& name,
                                     const Actor& by) {
  if (!has_secret(project, name)) return no_secret(project, name);
  MUSTER_CHECK(keep({.removed_secrets = {{project, name}},
                     .audit = {record(by, "secret.remove", name, {}, project)}}));
  secrets_.erase({project, name});
  return {};
}

Result<std::string> Accounts::open_secret(const std::string& project,
                                          const std::string& name) const {
  const auto found = secrets_.find({project, name});
  if (found == secrets_.end()) return no_secret(project, name);
  return parts_.box.open(found->second.sealed, project, name);
}

std::string Accounts::seal(std::string_view value, const std::string& project,
                           const std::string& name) {
  return parts_.box.seal(value, project, name, parts_.random);
}

Result<std::string> Accounts::open(std::string_view sealed, const std::string& project,
                                   const std::string& name) const {
  return parts_.box.open(sealed, project, name);
}

bool Accounts::has_secret(const std::string& project, const std::string& name) const {
  return secrets_.contains({project, name});
}

Error Accounts::no_secret(const std::string& project, const std::string& name) const {
  std::vector<std::string> known;
  for (const Secret& secret : secrets(project)) known.push_back(secret.name);
  Error error = unknown_name("secret", name, known,
                             "muster secret set " + name + " --project " + project + " adds one");
  error.what += " in project '" + project + "'";
  return error;
}

void Accounts::forget_project(const std::string& project, store::Batch& batch) const {
  for (const Secret& secret : secrets(project))
    batch.removed_secrets.push_back({project, secret.name});
  for (const auto& [name, user] : users_) {
    if (!user.projects.contains(project)) continue;
    batch.users.push_back(user);
    batch.users.back().projects.erase(project);
  }
}

void Accounts::project_is_gone(const std::string& project) {
  for (const Secret& secret : secrets(project)) secrets_.erase({project, secret.name});
  for (auto& [name, user] : users_) user.projects.erase(project);
}

}  // namespace muster::control
