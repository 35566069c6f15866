#include "launch/program.h"

#include <algorithm>

#include "job/inherited.h"

namespace muster::launch {

using job::JobSpec;
using job::Role;
using job::RoleSpec;
using job::Volume;

namespace {

using Words = std::vector<std::string>;

void append(Words& words, const Words& more) {
  words.insert(words.end(), more.begin(), more.end());
}

void put(std::map<std::string, std::string>& variables,
         const std::map<std::string, std::string>& more) {
  for (const auto& [name, value] : more) variables[name] = value;
}

bool brings_files(const JobSpec& spec) {
  return std::any_of(spec.volumes.begin(), spec.volumes.end(),
                     [](const Volume& volume) { return volume.kind == Volume::Kind::kTree; });
}

bool has_command(const JobSpec& spec, Role role) {
  const RoleSpec* const own = role_spec(spec, role);
  return !spec.command.empty() || (own != nullptr && !own->command.empty());
}

}  // namespace

const RoleSpec* role_spec(const JobSpec& spec, Role role) {
  switch (role) {
    case Role::kLauncher:
    case Role::kChief:
    case Role::kMaster:
      return &spec.leader;
    case Role::kParameterServer:
      return &spec.parameter_server;
    case Role::kEvaluator:
      return &spec.evaluator;
    case Role::kWorker:
    case Role::kSingle:
      break;
  }
  return nullptr;
}

const std::string& image_of(const JobSpec& spec, Role role) {
  const RoleSpec* const own = role_spec(spec, role);
  return own == nullptr || own->image.empty() ? spec.image : own->image;
}

Words program_of(const JobSpec& spec, Role role, const job::ImageStandIns& images) {
  if (role == Role::kWorker && spec.kind == job::Kind::kMpi) return spec.worker_command;
  const RoleSpec* const own = role_spec(spec, role);
  Words words;
  if (own != nullptr && !own->command.empty()) {
    words = own->command;
  } else {
    words = spec.command;
    const job::ImageStandIn* const stand_in = job::find_stand_in(images, image_of(spec, role));
    if (words.empty() && stand_in != nullptr) words = stand_in->command;
    append(words, spec.arguments);
  }
  if (own != nullptr) append(words, own->arguments);
  return words;
}

Words program_in_image(const JobSpec& spec, Role role, const ImageFacts& image) {
  Words asked = program_of(spec, role, {});
  // What MPI's workers run beside answering is a wish of its own.
  if (role == Role::kWorker && spec.kind == job::Kind::kMpi) return asked;
  if (has_command(spec, role) && spec.replaces_entrypoint) return asked;
  Words words = image.entrypoint;
  append(words, asked.empty() ? image.command : asked);
  return words;
}

std::string folder_in_image(const JobSpec& spec, const ImageFacts& image) {
  if (!spec.folder.empty() && !job::inherits_folder(spec)) return spec.folder;
  return image.folder.empty() ? "/" : image.folder;
}

std::map<std::string, std::string> set_variables_in_image(const JobSpec& spec, Role role) {
  std::map<std::string, std::string> variables = spec.environment;
  for (const std::string& name : job::inherited_variables(spec)) variables.erase(name);
  if (const RoleSpec* const own = role_spec(spec, role)) put(variables, own->environment);
  return variables;
}

std::string folder_of(const JobSpec& spec, Role role, const job::ImageStandIns& images) {
  const job::ImageStandIn* const stand_in = job::find_stand_in(images, image_of(spec, role));
  if (stand_in == nullptr || stand_in->folder.empty() || brings_files(spec)) return spec.folder;
  return stand_in->folder;
}

std::map<std::string, std::string> set_variables(const JobSpec& spec, Role role,
                                                 const job::ImageStandIns& images) {
  std::map<std::string, std::string> variables;
  if (const auto* const stand_in = job::find_stand_in(images, image_of(spec, role))) {
    variables = stand_in->environment;
  }
  put(variables, spec.environment);
  if (const RoleSpec* const own = role_spec(spec, role)) put(variables, own->environment);
  return variables;
}

}  // namespace muster::launch
