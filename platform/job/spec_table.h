// The fields of a JobSpec and of its parts, one row each (record/table.h).
//
// To add a field to JobSpec: add the member in job/spec.h, its row in job/spec_table.cc, and the
// code that uses it. JSON, YAML, --set, the flag, the OpenAPI document, the Python client and the
// store follow from the row.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "job/spec.h"
#include "record/table.h"
#include "record/words.h"

namespace muster::job {

const record::Table& table_of(const JobSpec*);
const record::Table& table_of(const Resources*);
const record::Table& table_of(const Scheduling*);
const record::Table& table_of(const RetryRule*);
const record::Table& table_of(const SecretUse*);
const record::Table& table_of(const Dependency*);
const record::Table& table_of(const ArraySpec*);
const record::Table& table_of(const Volume*);
const record::Table& table_of(const RegistryLogin*);
const record::Table& table_of(const ContainerSpec*);
const record::Table& table_of(const SlurmSpec*);
const record::Table& table_of(const KubernetesSpec*);
const record::Table& table_of(const PodContainer*);
const record::Table& table_of(const RoleSpec*);

record::Words<Kind> words_of(const Kind*);
record::Words<Sandbox> words_of(const Sandbox*);
record::Words<LaunchBy> words_of(const LaunchBy*);
record::Words<PullPolicy> words_of(const PullPolicy*);
record::Words<PodContainer::Runs> words_of(const PodContainer::Runs*);
record::Words<PodContainer::Of> words_of(const PodContainer::Of*);
record::Words<Purpose> words_of(const Purpose*);
record::Words<Packing> words_of(const Packing*);
record::Words<Resize> words_of(const Resize*);
record::Words<Success> words_of(const Success*);
record::Words<Dependency::Condition> words_of(const Dependency::Condition*);
record::Words<RetryRule::Action> words_of(const RetryRule::Action*);
record::Words<Volume::Kind> words_of(const Volume::Kind*);

/// The paths of the fields in which two specs differ, as "environment.LR", in the order of the rows.
std::vector<std::string> differing_fields(const JobSpec& left, const JobSpec& right);

/// FROM:TO[:ro|rw], where FROM is a path (which may be relative), storage/NAME or artifacts;
/// nothing for any other text. kVolumeForms describes the valid forms.
std::optional<Volume> parse_volume(std::string_view text);
/// JOB[:ok|any|failed]; nothing for any other text. kDependencyForms describes the valid forms.
std::optional<Dependency> parse_dependency(std::string_view text);
inline constexpr const char* kDependencyForms = "is not JOB, JOB:ok, JOB:any or JOB:failed";
inline constexpr const char* kVolumeForms = "is not FROM:TO, FROM:TO:ro or FROM:TO:rw";

// Limits that several tables of a job's spec use (spec_table.h).

inline constexpr int64_t kDayInMs = int64_t{24} * 3600 * 1000;

/// In a schema: a word of 1 to 100 printable ASCII characters without blanks at either end.
inline constexpr const char* kWordPattern = "^[!-~]([ -~]{0,98}[!-~])?$";

}  // namespace muster::job
