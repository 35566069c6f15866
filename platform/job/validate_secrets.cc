#include "job/validate_secrets.h"

#include <algorithm>
#include <array>
#include <set>
#include <string>

#include "job/role_specs.h"
#include "job/validate.h"

namespace muster::job {

namespace {

constexpr size_t kLongestSecretName = 128;
constexpr size_t kLongestFile = 100;

/// Open MPI hands variables with its prefixes on as words of command lines, where everybody can
/// read them; the others would be overwritten, or would break the task.
bool is_reserved(std::string_view variable) {
  constexpr std::array<std::string_view, 4> kPrefixes{"MUSTER_", "OMPI_", "PRTE_", "PMIX_"};
  constexpr std::array<std::string_view, 3> kNames{"PATH", "TMPDIR", "CUDA_VISIBLE_DEVICES"};
  return std::any_of(kPrefixes.begin(), kPrefixes.end(),
                     [&](std::string_view prefix) { return variable.starts_with(prefix); }) ||
         std::find(kNames.begin(), kNames.end(), variable) != kNames.end();
}

/// Relative, and nothing in it that leads elsewhere or that no terminal shows.
bool is_plain_relative_path(std::string_view path) {
  if (path.empty() || path.size() > kLongestFile) return false;
  const auto shown = [](char c) { return c > ' ' && c <= '~' && c != '\\'; };
  if (!std::all_of(path.begin(), path.end(), shown)) return false;
  return has_plain_parts(path);
}

/// What is named so far, in the order of the spec.
class Places {
 public:
  Places(const JobSpec& spec, Checker& check) : spec_(spec), check_(check) {}

  void add(const SecretUse& use, const std::string& field) {
    check_.require(is_secret_name(use.name), field + ".name",
                   "'" + use.name + "' is not the name of a secret; use letters, digits and '_'");
    check_.require(!use.variable.empty() || !use.file.empty(), field,
                   "goes nowhere; give it a variable or a file");
    // A variable of the same name has the same fault.
    const bool is_told = use.variable == use.name && !is_secret_name(use.name);
    if (!use.variable.empty() && !is_told) add_variable(use.variable, field + ".variable");
    if (!use.file.empty()) add_file(use.file, field + ".file");
  }

 private:
  void add_variable(const std::string& variable, const std::string& field) {
    const std::string quoted = "'" + variable + "'";
    if (!is_variable_name(variable)) {
      check_.require(false, field, quoted + " is not a variable name; use letters, digits and '_'");
      return;
    }
    check_.require(!is_reserved(variable), field,
                   quoted + " is a variable that Muster or MPI sets");
    const auto roles = roles_of(spec_);
    const bool is_set = std::any_of(roles.begin(), roles.end(), [&](const NamedRole& named) {
      return named.role.environment.contains(variable);
    });
    check_.require(!is_set && !spec_.environment.contains(variable), field,
                   quoted + " is in the environment of the job, too");
    check_.require(variables_.insert(variable).second, field,
                   quoted + " holds another secret already");
  }

  void add_file(const std::string& file, const std::string& field) {
    const std::string quoted = "'" + file + "'";
    if (!is_plain_relative_path(file)) {
      check_.require(false, field,
                     quoted + " is not a path below /generated/secrets; use at most " +
                         std::to_string(kLongestFile) + " characters, as in tls/ca.pem");
      return;
    }
    // "a" and "a/b" cannot both be: a file is no folder.
    const bool is_taken = std::any_of(files_.begin(), files_.end(), [&](const std::string& other) {
      return other == file || other.starts_with(file + "/") || file.starts_with(other + "/");
    });
    check_.require(!is_taken, field, quoted + " is where another secret is already");
    files_.insert(file);
  }

  const JobSpec& spec_;
  Checker& check_;
  std::set<std::string> variables_;
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

}  // namespace muster::job
