#include "launch/secrets.h"

#include <algorithm>

namespace muster::launch {

using base::Error;
using base::ErrorCode;
using job::SecretUse;

namespace {

constexpr const char* kFolder = "secrets";

/// "secrets", "secrets/tls" for "tls/ca.pem": each once, parents first.
void add_folders(const std::string& file, std::vector<std::string>& folders) {
  const std::string path = std::string(kFolder) + "/" + file;
  for (size_t end = path.find('/'); end != std::string::npos; end = path.find('/', end + 1)) {
    std::string folder = path.substr(0, end);
    if (std::find(folders.begin(), folders.end(), folder) == folders.end()) {
      folders.push_back(std::move(folder));
    }
  }
}

}  // namespace

base::Result<void> check_secrets(const std::vector<SecretUse>& uses, const Texts& values) {
  for (const SecretUse& use : uses) {
    const auto value = values.find(use.name);
    if (value == values.end()) {
      return Error{.code = ErrorCode::kNotFound,
                   .what = "there is no secret '" + use.name + "'",
                   .advice = "muster secret set " + use.name + " creates it"};
    }
    if (!use.variable.empty() && value->second.find('\0') != std::string::npos) {
      return Error{
          .code = ErrorCode::kInvalid,
          .what = "secret '" + use.name + "' contains a NUL byte, which a variable cannot contain",
          .advice = "pass it as a file: --secret-file " + use.name};
    }
  }
  return {};
}

void add_secret_variables(const std::vector<SecretUse>& uses, const Texts& values,
                          Texts& environment) {
  for (const SecretUse& use : uses) {
    if (!use.variable.empty()) environment[use.variable] = values.at(use.name);
  }
}

void add_secret_files(const std::vector<SecretUse>& uses, const Texts& values, TaskPlan& plan) {
  for (const SecretUse& use : uses) {
    if (use.file.empty()) continue;
    add_folders(use.file, plan.folders);
    plan.files.push_back({.path = std::string(kFolder) + "/" + use.file,
                          .content = values.at(use.name),
                          .mode = 0600,
                          .secret = true});
  }
}

}  // namespace muster::launch
