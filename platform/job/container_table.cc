#include "base/text.h"
#include "job/capability.h"
#include "job/spec_limits.h"
#include "job/spec_table.h"
#include "record/field.h"

namespace muster::job {

using record::As;
using record::field;
using record::Need;
using record::Table;

namespace {

constexpr const char* kServerPattern =
    "^(([A-Za-z0-9]([A-Za-z0-9-]*[A-Za-z0-9])?(\\.[A-Za-z0-9]([A-Za-z0-9-]*[A-Za-z0-9])?)*|"
    "\\[[0-9A-Fa-f:]+\\])(:([1-9][0-9]{0,3}|[1-5][0-9]{4}|6[0-4][0-9]{3}|65[0-4][0-9]{2}|"
    "655[0-2][0-9]|6553[0-5]))?)?$";
constexpr const char* kSlurmNamePattern = "^([A-Za-z0-9_+:@][A-Za-z0-9_+:@.-]{0,127})?$";
constexpr const char* kSlurmNamesPattern =
    "^([A-Za-z0-9_+:@][A-Za-z0-9_+:@.-]{0,127}(,[A-Za-z0-9_+:@][A-Za-z0-9_+:@.-]{0,127})*)?$";

void normalise_capabilities(void* names) {
  auto& capabilities = *static_cast<std::vector<std::string>*>(names);
  capabilities = capabilities_of(capabilities);
}

/// The text of the schema for capability names, with or without "CAP_".
const char* capability_schema() {
  static const std::string schema = R"({"items": {"type": "string", "pattern": "^(CAP_)?()" +
                                    base::joined(capabilities(), "|") +
                                    R"()$"}, "uniqueItems": true})";
  return schema.c_str();
}

record::Row slurm_row(record::Row row, const char* flag, const char* value, const char* help) {
  row.notes.flag = {.name = flag, .value = value, .help = help};
  return row;
}

}  // namespace

const Table& table_of(const RegistryLogin*) {
  static const Table table = record::table<RegistryLogin>(
      "RegistryLogin",
      {field<&RegistryLogin::server>(
           "server",
           {.help = "Absent or empty: the one that the image names.",
            .max_length = 255,
            .pattern = kServerPattern,
            .flag = {.name = "--registry-server",
                     .value = "HOST[:PORT]",
                     .help = "registry to log in to (default: the registry of the image)"}}),
       field<&RegistryLogin::username>(
           "username", {.need = Need::kOnWire,
                        .pattern = kWordPattern,
                        .flag = {.name = "--registry-username",
                                 .value = "USER",
                                 .help = "user name for the registry of the image"}}),
       field<&RegistryLogin::secret>(
           "secret", {.help = "Of the project: the one that holds the password.",
                      .need = Need::kOnWire,
                      .pattern = "^[A-Za-z_][A-Za-z0-9_]{0,127}$",
                      .flag = {.name = "--registry-secret",
                               .value = "NAME",
                               .help = "the project's secret that contains the password"}})});
  return table;
}

const Table& table_of(const ContainerSpec*) {
  static const Table table = record::table<ContainerSpec>(
      "Container",
      {field<&ContainerSpec::pull>(
           "pull",
           {.flag = {.name = "--image-pull-policy",
                     .value = "WHEN",
                     .help = "when to fetch the image: if-missing (default), always or never"}}),
       field<&ContainerSpec::writable_root>(
           "writable_root",
           {.help = "All of the image can be written to; else only volumes, /tmp and the like.",
            .flag = {.name = "--writable-root",
                     .help = "let tasks write to the whole image, not only to volumes"}}),
       field<&ContainerSpec::new_privileges>(
           "new_privileges", {.help = "Set-user-id programs get what they say.",
                              .flag = {.name = "--allow-new-privileges",
                                       .help = "let set-user-id programs gain privileges"}}),
       field<&ContainerSpec::capabilities>(
           "capabilities",
           {.help = "Rights of root's beside the few that are left to it, each once, with or "
                    "without `CAP_`.",
            .schema = capability_schema(),
            .flag = {.name = "--cap-add",
                     .value = "NAME",
                     .help = "keep this capability of root, as in SYS_PTRACE",
                     .choices = capabilities},
            .normalise = normalise_capabilities}),
       field<&ContainerSpec::shm_bytes>(
           "shm",
           {.help = "Of /dev/shm. 0: as the engine has it.",
            .schema = R"({"anyOf": [{"const": 0}, {"minimum": 65536, "maximum": 17592186044416},
                                    {"type": "null"}]})",
            .flag = {.name = "--shm-size", .value = "SIZE", .help = "size of /dev/shm, as in 8G"}},
           As::kBytes)},
      "How far the containers of a job are set apart from their host. What is absent is the "
      "stricter of both.");
  return table;
}

const Table& table_of(const SlurmSpec*) {
  static const Table table = record::table<SlurmSpec>(
      "Slurm",
      {slurm_row(field<&SlurmSpec::partition>(
                     "partition", {.help = "In the place of the node pools; several with commas "
                                           "between them.",
                                   .max_length = 1024,
                                   .pattern = kSlurmNamesPattern}),
                 "--slurm-partition", "NAMES",
                 "Slurm: partitions in which the job may run, as in gpu,long"),
       slurm_row(field<&SlurmSpec::account>("account", {.help = "In the place of the project's.",
                                                        .pattern = kSlurmNamePattern}),
                 "--slurm-account", "NAME",
                 "Slurm: account to charge (default: the account of the project)"),
       slurm_row(field<&SlurmSpec::qos>("qos", {.max_length = 1024, .pattern = kSlurmNamesPattern}),
                 "--slurm-qos", "NAME", "Slurm: quality of service"),
       slurm_row(field<&SlurmSpec::reservation>(
                     "reservation", {.max_length = 1024, .pattern = kSlurmNamesPattern}),
                 "--slurm-reservation", "NAME", "Slurm: reservation to run in"),
       slurm_row(
           field<&SlurmSpec::constraint>(
               "constraint", {.help = "Features of nodes, as Slurm joins them: `a100&nvlink`.",
                              .max_length = 1024,
                              .pattern = "^([A-Za-z0-9_+:@.&|*,()\\[\\]!=/]"
                                         "[A-Za-z0-9_+:@.&|*,()\\[\\]!=/-]*)?$"}),
           "--slurm-constraint", "FEATURES",
           "Slurm: required features of the nodes, as in 'a100&nvlink'")},
      "What is said to Slurm of a job, beside what is made of the rest of the spec. On an engine "
      "other than Slurm it is kept and has no effect. What is absent or empty is not said, and "
      "what Slurm does then holds.");
  return table;
}

}  // namespace muster::job
