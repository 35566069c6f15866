#include "cli/spec_file_container.h"

#include <vector>

#include "cli/container_flags.h"
#include "job/capability.h"
#include "job/units.h"

namespace muster::cli {

namespace {

void read_capabilities(YamlFields& fields, const std::string& field, const YamlValue& value,
                       std::vector<std::string>& names) {
  std::vector<std::string> written;
  fields.texts(field, value, written);
  names = job::capabilities_of(written);
}

void read_container(YamlFields& fields, const std::string& field, const YamlValue& value,
                    job::ContainerSpec& container) {
  if (!fields.is(field, value, YamlValue::Type::kMap)) return;
  const std::string prefix = field + ".";
  fields.map(value, prefix,
             {{"pull",
               [&](const YamlValue& inner) {
                 fields.word(prefix + "pull", inner, {"if-missing", "always", "never"},
                             pull_policy_of_any, container.pull);
               }},
              {"writable_root",
               [&](const YamlValue& inner) {
                 fields.flag(prefix + "writable_root", inner, container.writable_root);
               }},
              {"new_privileges",
               [&](const YamlValue& inner) {
                 fields.flag(prefix + "new_privileges", inner, container.new_privileges);
               }},
              {"capabilities",
               [&](const YamlValue& inner) {
                 read_capabilities(fields, prefix + "capabilities", inner, container.capabilities);
               }},
              {"shm", [&](const YamlValue& inner) {
                 fields.with(prefix + "shm", inner, job::parse_bytes, container.shm_bytes);
               }}});
}

}  // namespace

void read_login(YamlFields& fields, const std::string& field, const YamlValue& value,
                job::RegistryLogin& login) {
  if (!fields.is(field, value, YamlValue::Type::kMap)) return;
  const std::string prefix = field + ".";
  const auto into = [&](const char* key, std::string& target) {
    return std::pair(std::string(key),
                     [&fields, path = prefix + key, &target](const YamlValue& inner) {
                       fields.text(path, inner, target);
                     });
  };
  fields.map(value, prefix,
             {into("server", login.server), into("username", login.username),
              into("secret", login.secret)});
}

YamlFields::Keys container_keys(YamlFields& fields, job::JobSpec& spec) {
  return {
      {"user", [&](const YamlValue& value) { fields.text("user", value, spec.user); }},
      {"registry",
       [&](const YamlValue& value) { read_login(fields, "registry", value, spec.registry); }},
      {"container",
       [&](const YamlValue& value) { read_container(fields, "container", value, spec.container); }},
      {"launch",
       [&](const YamlValue& value) {
         fields.word("launch", value, {"auto", "ssh", "agent", "srun"}, job::launch_by_of,
                     spec.launch);
       }},
      {"replaces_entrypoint", [&](const YamlValue& value) {
         fields.flag("replaces_entrypoint", value, spec.replaces_entrypoint);
       }}};
}

}  // namespace muster::cli
