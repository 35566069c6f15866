#include <algorithm>
#include <array>
#include <limits>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/text.h"
#include "base/units.h"
#include "job/container.h"
#include "job/spec.h"
#include "job/validate.h"
#include "record/input.h"

namespace muster::job {

namespace {

constexpr int64_t kLeastShm = int64_t{64} << 10;
constexpr int64_t kMostShm = int64_t{16} << 40;

bool is_number(std::string_view text) {
  return !text.empty() &&
         std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
}

/// A user or a group: a name as in /etc/passwd, or a number.
bool is_account(std::string_view text) {
  constexpr size_t kLongest = 64;
  // The largest number is not a valid id in the kernel.
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
  const bool is_given = !login.server.empty() || !login.username.empty() || !login.secret.empty();
  check.require(!is_given || !login.username.empty(), field + ".username",
                "is missing; give the user name for the registry");
  check.require(!is_given || !login.secret.empty(), field + ".secret",
                "is missing; name the secret of the project that holds the password");
}

/// `whose`: "the job".
void check_image_user(const std::string& image, const std::string& user, const RegistryLogin& login,
                      const std::string& prefix, const std::string& whose, Checker& check) {
  const std::string without = " is for an image, but " + whose + " names no image";
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
    const std::string suggestion =
        is_known ? "" : record::did_you_mean(capability_of(names[i]), known);
    check.require(is_known, field,
                  in_quotes(names[i]) + " is not a Linux capability" +
                      (suggestion.empty() ? " such as SYS_PTRACE" : suggestion));
    check.require(!is_known || seen.insert(names[i]).second, field,
                  in_quotes(names[i]) + " is listed twice");
  }
}

void check_shm(int64_t bytes, Checker& check) {
  check.require(bytes == 0 || (bytes >= kLeastShm && bytes <= kMostShm), "container.shm",
                std::to_string(bytes) + " bytes are out of range; give " +
                    base::format_bytes(kLeastShm) + " to " + base::format_bytes(kMostShm));
}

/// Container settings without an image, which have no effect.
void check_that_there_is_an_image(const JobSpec& spec, Checker& check) {
  if (names_an_image(spec)) return;
  const std::string what = "is for tasks that run in an image, but the job names no image";
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
  // Another check reports roles that the kind does not have.
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

namespace {

constexpr size_t kLongestSlurmName = 128;
constexpr size_t kLongestText = 1024;

bool is_of_a_name(char c) {
  constexpr std::string_view kOthers = "_-.+:@";
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
         kOthers.find(c) != std::string_view::npos;
}

bool is_list_of_names(const std::string& text) {
  const std::vector<std::string> names = base::split(text, ',');
  return text.size() <= kLongestText && std::all_of(names.begin(), names.end(), is_slurm_name);
}

/// Features and Slurm's operators between them. Slurm itself checks their meaning.
bool is_constraint(std::string_view text) {
  constexpr std::string_view kJoins = "&|*,()[]!=/";
  return text.size() <= kLongestText && !text.starts_with('-') &&
         std::all_of(text.begin(), text.end(), [&](char c) {
           return is_of_a_name(c) || kJoins.find(c) != std::string_view::npos;
         });
}

}  // namespace

bool is_slurm_name(std::string_view text) {
  return !text.empty() && text.size() <= kLongestSlurmName && text.front() != '-' &&
         text.front() != '.' && std::all_of(text.begin(), text.end(), is_of_a_name);
}

void check_slurm(const SlurmSpec& slurm, Checker& check) {
  const std::string what_it_has = "; a name has letters, digits and _-.+:@";
  const auto lists = [&](const std::string& text, const std::string& field,
                         const std::string& noun) {
    check.require(text.empty() || is_list_of_names(text), "slurm." + field,
                  in_quotes(text) + " is neither the name of a " + noun +
                      " nor a list of them with commas" + what_it_has);
  };
  lists(slurm.partition, "partition", "partition");
  check.require(slurm.account.empty() || is_slurm_name(slurm.account), "slurm.account",
                in_quotes(slurm.account) + " is not the name of an account" + what_it_has);
  lists(slurm.qos, "qos", "QOS");
  lists(slurm.reservation, "reservation", "reservation");
  check.require(is_constraint(slurm.constraint), "slurm.constraint",
                in_quotes(slurm.constraint) +
                    " is not an expression of node features such as a100&nvlink; use letters, "
                    "digits, _-.+:@ and Slurm's &|*,()[]!=/");
}

namespace {

constexpr size_t kLongestSecretName = 128;
constexpr size_t kLongestFile = 100;

/// Open MPI passes variables with its prefixes in command lines, which every user can read; other
/// variables would be overwritten, or would break the task.
bool is_reserved(std::string_view variable) {
  constexpr std::array<std::string_view, 4> kPrefixes{"MUSTER_", "OMPI_", "PRTE_", "PMIX_"};
  constexpr std::array<std::string_view, 3> kNames{"PATH", "TMPDIR", "CUDA_VISIBLE_DEVICES"};
  return std::any_of(kPrefixes.begin(), kPrefixes.end(),
                     [&](std::string_view prefix) { return variable.starts_with(prefix); }) ||
         std::find(kNames.begin(), kNames.end(), variable) != kNames.end();
}

/// A relative path without parts such as ".." and without control characters.
bool is_plain_relative_path(std::string_view path) {
  if (path.empty() || path.size() > kLongestFile) return false;
  const auto shown = [](char c) { return c > ' ' && c <= '~' && c != '\\'; };
  if (!std::all_of(path.begin(), path.end(), shown)) return false;
  return has_plain_parts(path);
}

/// The variables and files so far, in the order of the spec.
class Places {
 public:
  Places(const JobSpec& spec, Checker& check) : spec_(spec), check_(check) {}

  void add(const SecretUse& use, const std::string& field) {
    check_.require(is_secret_name(use.name), field + ".name",
                   "'" + use.name + "' is not the name of a secret; use letters, digits and '_'");
    check_.require(!use.variable.empty() || !use.file.empty(), field,
                   "has no destination; give it a variable or a file");
    // If the variable has the secret's name, the fault was already reported for the name.
    const bool is_reported = use.variable == use.name && !is_secret_name(use.name);
    if (!use.variable.empty() && !is_reported) add_variable(use, field + ".variable");
    if (!use.file.empty()) add_file(use.file, field + ".file");
  }

 private:
  void add_variable(const SecretUse& use, const std::string& field) {
    const std::string& variable = use.variable;
    const std::string quoted = "'" + variable + "'";
    if (!is_variable_name(variable)) {
      check_.require(false, field, quoted + " is not a variable name; use letters, digits and '_'");
      return;
    }
    check_.require(!is_reserved(variable), field,
                   quoted + " is a reserved variable; choose another name");
    const auto roles = roles_of(spec_);
    const bool is_set = std::any_of(roles.begin(), roles.end(), [&](const NamedRole& named) {
      return named.role.environment.contains(variable);
    });
    check_.require(!is_set && !spec_.environment.contains(variable), field,
                   quoted + " is also in the environment of the job");
    const auto [first, is_new] = variables_.emplace(variable, use.name);
    check_.require(
        is_new, field,
        quoted + (first->second == use.name ? " is given twice" : " already holds another secret"));
  }

  void add_file(const std::string& file, const std::string& field) {
    const std::string quoted = "'" + file + "'";
    if (!is_plain_relative_path(file)) {
      check_.require(false, field,
                     quoted + " is not a path below /generated/secrets; use at most " +
                         std::to_string(kLongestFile) + " characters, as in tls/ca.pem");
      return;
    }
    // "a" and "a/b" conflict: a file is not a folder.
    const bool is_taken = std::any_of(files_.begin(), files_.end(), [&](const std::string& other) {
      return other == file || other.starts_with(file + "/") || file.starts_with(other + "/");
    });
    check_.require(!is_taken, field, quoted + " is already the file of another secret");
    files_.insert(file);
  }

  const JobSpec& spec_;
  Checker& check_;
  std::map<std::string, std::string> variables_;  ///< the secret of each
  std::set<std::string> files_;
};

}  // namespace

bool is_secret_name(std::string_view text) {
  return text.size() <= kLongestSecretName && is_variable_name(text);
}

void check_secrets(const JobSpec& spec, Checker& check) {
  if (spec.secrets.size() > static_cast<size_t>(kMaxSecrets)) {
    check.require(false, "secrets", "are more than " + std::to_string(kMaxSecrets));
    return;
  }
  Places places(spec, check);
  for (size_t i = 0; i < spec.secrets.size(); ++i) {
    places.add(spec.secrets[i], "secrets[" + std::to_string(i) + "]");
  }
}

namespace {

constexpr size_t kLongestPath = 1000;
constexpr size_t kTreeIdLength = 64;

bool is_below(std::string_view path, std::string_view folder) {
  return path.size() > folder.size() && path.starts_with(folder) &&
         (folder == "/" || path[folder.size()] == '/');
}

bool is_or_is_below(std::string_view path, std::string_view folder) {
  return path == folder || is_below(path, folder);
}

/// An absolute path in its normal form, so that equal paths are detected.
bool is_plain_absolute_path(std::string_view path) {
  if (path == "/") return true;
  if (!path.starts_with('/') || path.size() > kLongestPath) return false;
  if (!is_shown(path)) return false;
  return has_plain_parts(path.substr(1));
}

std::string no_plain_path(const std::string& path) {
  return in_quotes(path) + " is not an absolute path of at most " + std::to_string(kLongestPath) +
         " bytes without '.', '..', '//' and a '/' at its end";
}

bool is_tree_id(std::string_view text) {
  return text.size() == kTreeIdLength && std::all_of(text.begin(), text.end(), [](char c) {
           return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
         });
}

void check_source(const Volume& volume, const std::string& field, Checker& check) {
  switch (volume.kind) {
    case Volume::Kind::kHostPath:
      return check.require(is_plain_absolute_path(volume.source), field,
                           no_plain_path(volume.source));
    case Volume::Kind::kTree:
      return check.require(volume.source.empty() || is_tree_id(volume.source), field,
                           in_quotes(volume.source) +
                               " is not the id of uploaded files; an id has " +
                               std::to_string(kTreeIdLength) + " hex digits");
    case Volume::Kind::kStorage:
      return check.require(is_dns_label(volume.source, 63), field,
                           in_quotes(volume.source) +
                               " is not a valid storage name; use 1 to 63 of a-z, 0-9 and '-'");
    case Volume::Kind::kArtifacts:
      return check.require(volume.source.empty(), field,
                           "artifacts belong to the job; leave the source out");
  }
}

/// Whether the target is valid without regard to the other volumes.
bool check_target(const std::string& target, const std::string& field, Checker& check) {
  if (!is_plain_absolute_path(target)) {
    check.require(false, field, no_plain_path(target));
    return false;
  }
  constexpr std::array<std::string_view, 4> kTaken{"/proc", "/sys", "/dev", "/generated"};
  const auto* taken = std::find_if(kTaken.begin(), kTaken.end(), [&](std::string_view folder) {
    return is_or_is_below(target, folder);
  });
  check.require(target != "/", field, "'/' is the root folder; name a folder below it");
  check.require(taken == kTaken.end(), field,
                in_quotes(target) + " is reserved for the sandbox; choose another path");
  return target != "/" && taken == kTaken.end();
}

/// Why `volume` conflicts with `other`, or empty.
std::string clash(const Volume& volume, const Volume& other) {
  if (volume.target == other.target) {
    return in_quotes(volume.target) + " is already the target of another volume";
  }
  if (other.read_only && is_below(volume.target, other.target)) {
    return in_quotes(volume.target) + " is within " + in_quotes(other.target) +
           ", which is read-only: its folder cannot be created there";
  }
  return "";
}

}  // namespace

void check_volumes(const JobSpec& spec, Checker& check) {
  const std::vector<Volume>& volumes = spec.volumes;
  if (volumes.size() > static_cast<size_t>(kMaxVolumes)) {
    return check.require(false, "volumes", "are more than " + std::to_string(kMaxVolumes));
  }
  check.require(volumes.empty() || spec.sandbox != Sandbox::kNone, "volumes",
                "is not possible without a sandbox, and this job runs without one");
  for (size_t i = 0; i < volumes.size(); ++i) {
    const std::string field = "volumes[" + std::to_string(i) + "]";
    check_source(volumes[i], field + ".source", check);
    if (!check_target(volumes[i].target, field + ".target", check)) continue;
    // Each pair is checked once: of two volumes with the same target, the second has the fault; of
    // a volume within another, the inner one has the fault.
    for (size_t j = 0; j < volumes.size(); ++j) {
      if (j == i || (j > i && volumes[j].target == volumes[i].target)) continue;
      const std::string what = clash(volumes[i], volumes[j]);
      check.require(what.empty(), field + ".target", what);
      if (!what.empty()) break;
    }
  }
}

}  // namespace muster::job
