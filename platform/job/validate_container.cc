#include "job/validate_container.h"

#include <algorithm>
#include <limits>
#include <set>
#include <string>

#include "base/number.h"
#include "base/units.h"
#include "job/capability.h"
#include "job/image_name.h"
#include "job/role_specs.h"
#include "job/validate.h"

namespace muster::job {

namespace {

constexpr int64_t kLeastShm = int64_t{64} << 10;
constexpr int64_t kMostShm = int64_t{16} << 40;

bool is_number(std::string_view text) {
  return !text.empty() &&
         std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
}

/// Of a user or a group: a name as /etc/passwd has them, or a number.
bool is_account(std::string_view text) {
  constexpr size_t kLongest = 64;
  // The largest means "nobody in particular" to the kernel.
  constexpr uint32_t kNone = std::numeric_limits<uint32_t>::max();
  if (text.empty() || text.size() > kLongest || text.front() == '-' || text.front() == '.') {
    return false;
  }
  if (is_number(text)) {
    const auto number = base::number_of<uint32_t>(text);
    return number && *number != kNone;
  }
  return std::all_of(text.begin(), text.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '-' || c == '.';
  });
}

bool is_user(std::string_view text) {
  const size_t colon = text.find(':');
  return is_account(text.substr(0, colon)) &&
         (colon == std::string_view::npos || is_account(text.substr(colon + 1)));
}

void check_user(const std::string& user, const std::string& field, Checker& check) {
  check.require(user.empty() || is_user(user), field,
                in_quotes(user) +
                    " is neither USER nor USER:GROUP, each a name or a number of the "
                    "image");
}

void check_registry(const RegistryLogin& login, const std::string& field, Checker& check) {
  constexpr size_t kLongest = 255;
  check.require(
      login.server.empty() || (login.server.size() <= kLongest && is_registry(login.server)),
      field + ".server",
      in_quotes(login.server) + " is not the name of a registry, as in registry.example.com:5000");
  check.require(login.username.empty() || is_token(login.username), field + ".username",
                in_quotes(login.username) + " is not a user's name of a registry");
  check.require(
      login.secret.empty() || is_secret_name(login.secret), field + ".secret",
      in_quotes(login.secret) + " is not the name of a secret; use letters, digits and '_'");
  const bool is_said = !login.server.empty() || !login.username.empty() || !login.secret.empty();
  check.require(!is_said || !login.username.empty(), field + ".username",
                "is missing; say who logs in to the registry");
  check.require(!is_said || !login.secret.empty(), field + ".secret",
                "is missing; say which secret of the project holds the password");
}

/// `whose`: "the job".
void check_image_user(const std::string& image, const std::string& user, const RegistryLogin& login,
                      const std::string& prefix, const std::string& whose, Checker& check) {
  const std::string without = " is of an image, and " + whose + " names none";
  check.require(user.empty() || !image.empty(), prefix + "user", in_quotes(user) + without);
  check.require(login == RegistryLogin() || !image.empty(), prefix + "registry",
                "a login" + without);
  check_user(user, prefix + "user", check);
  check_registry(login, prefix + "registry", check);
}

void check_role(const RoleSpec& role, const std::string& field, Checker& check) {
  check_image_user(role.image, role.user, role.registry, field + ".", "the " + field + " itself",
                   check);
}

void check_capabilities(const std::vector<std::string>& names, Checker& check) {
  if (names.size() > capabilities().size()) {
    return check.require(false, "container.capabilities", "are more than Linux has");
  }
  std::set<std::string> seen;
  for (size_t i = 0; i < names.size(); ++i) {
    const std::string field = "container.capabilities[" + std::to_string(i) + "]";
    const auto& known = capabilities();
    const bool is_known = std::find(known.begin(), known.end(), names[i]) != known.end();
    const std::string meant = is_known ? "" : base::nearest(capability_of(names[i]), known);
    check.require(
        is_known, field,
        in_quotes(names[i]) + " is no capability of Linux" +
            (meant.empty() ? ", as SYS_PTRACE is one" : "; did you mean '" + meant + "'?"));
    check.require(!is_known || seen.insert(names[i]).second, field,
                  in_quotes(names[i]) + " is named already");
  }
}

void check_shm(int64_t bytes, Checker& check) {
  check.require(bytes == 0 || (bytes >= kLeastShm && bytes <= kMostShm), "container.shm",
                std::to_string(bytes) + " bytes are out of range; give " +
                    base::format_bytes(kLeastShm) + " to " + base::format_bytes(kMostShm));
}

/// What is said of containers though there will be none.
void check_that_there_is_an_image(const JobSpec& spec, Checker& check) {
  if (names_an_image(spec)) return;
  const std::string what = "is of tasks that run in an image, and the job names none";
  const ContainerSpec& container = spec.container;
  const ContainerSpec usual;
  check.require(container.pull == usual.pull, "container.pull", what);
  check.require(!container.writable_root, "container.writable_root", what);
  check.require(!container.new_privileges, "container.new_privileges", what);
  check.require(container.capabilities.empty(), "container.capabilities", what);
  check.require(container.shm_bytes == 0, "container.shm", what);
  check.require(spec.replaces_entrypoint, "replaces_entrypoint", what);
}

}  // namespace

void check_container(const JobSpec& spec, Checker& check) {
  check_image_user(spec.image, spec.user, spec.registry, "", "the job", check);
  // Which kinds have these roles is told elsewhere.
  if (spec.kind != Kind::kSingle) check_role(spec.leader, "leader", check);
  if (spec.kind == Kind::kGrpc) {
    check_role(spec.parameter_server, "parameter_server", check);
    check_role(spec.evaluator, "evaluator", check);
  }
  check_that_there_is_an_image(spec, check);
  check_capabilities(spec.container.capabilities, check);
  check_shm(spec.container.shm_bytes, check);
  check.require(spec.launch == LaunchBy::kAuto || spec.kind == Kind::kMpi, "launch",
                "only an mpi job has a launcher that starts ranks; leave it out");
}

}  // namespace muster::job
