// Validation of a JobSpec: every fault at once, each with the path of its field, as in job files
// and in the API.
//
// Pure.
#pragma once

#include <cstddef>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "job/checker.h"
#include "job/spec.h"

namespace muster::job {

using base::Fault;

// Generous bounds that keep one job from overloading the machine.
inline constexpr int kMaxWorkers = 1000;  ///< together with the parameter servers
inline constexpr int kMaxSlotsPerWorker = 1024;
inline constexpr int kMaxSecrets = 100;
inline constexpr int kMaxVolumes = 100;
inline constexpr int kMaxLabels = 64;

/// Empty if the spec is valid.
std::vector<Fault> validate(const JobSpec& spec);

/// Adds to `unread`, the faults of fields that could not be read, the fields whose checks also read
/// such a field: with its default, validate() would find faults that the user did not make.
/// `prefix`: the place of the spec in the document, as in "job.".
void add_dependents(std::vector<Fault>& unread, std::string_view prefix = {});

/// Whether `text` is a DNS label (RFC 1123: a-z, 0-9, '-', a letter or digit at both ends) short
/// enough to carry "-worker-999" and stay a host name.
bool is_job_name(std::string_view text);

/// Where a name template has its number: "train-{n}".
inline constexpr std::string_view kNumberPlace = "{n}";
/// Whether `text` contains kNumberPlace once, and is a job's name with a number there.
bool is_name_template(std::string_view text);

/// A label name is text of 1 to 128 bytes without '=' and control characters.
bool is_label_name(std::string_view text);
/// Text of at most 256 bytes without control characters; empty: the label is a tag.
bool is_label_value(std::string_view text);

/// A secret's name is that of a variable, with at most 128 characters.
bool is_secret_name(std::string_view text);

// --- the parts of validate()

/// Images, registry logins, the isolation of containers, and how ranks are started in them.
void check_container(const JobSpec& spec, Checker& check);

/// Text that a line of a table can show: UTF-8 without control characters, including those of
/// Latin-1 (C2 80 to C2 9F).
bool is_shown(std::string_view text);

/// Labels and annotations.
void check_labels(const JobSpec& spec, Checker& check);

/// Images, commands and arguments; every task must have a command or an image.
void check_programs(const JobSpec& spec, Checker& check);
/// The number of tasks of each role, and fields that do not apply to the kind.
void check_shape(const JobSpec& spec, Checker& check);
void check_environments(const JobSpec& spec, Checker& check);

/// `field` is the path of the resources: "leader.resources".
void check_resources(const Resources& resources, const std::string& field, Checker& check);
void check_scheduling(const JobSpec& spec, Checker& check);
/// The jobs that it waits for, and its singleton.
void check_dependencies(const JobSpec& spec, Checker& check);

/// The names of secrets, and their variables and files.
void check_secrets(const JobSpec& spec, Checker& check);

/// Names that are safe in an #SBATCH line, in an argument and in a table.
void check_slurm(const SlurmSpec& slurm, Checker& check);
void check_kubernetes(const KubernetesSpec& options, Checker& check);
/// Init containers and sidecars.
void check_pod_containers(const JobSpec& spec, Checker& check);

/// The name of a partition, an account, a QOS or a reservation: letters, digits and "_-.+:@", not
/// beginning with '-' or '.'.
bool is_slurm_name(std::string_view text);

/// The sources and targets of volumes.
void check_volumes(const JobSpec& spec, Checker& check);

/// The bytes of all texts in `spec` together. The server keeps jobs in memory, so validate() bounds
/// this sum.
size_t text_size(const JobSpec& spec);

}  // namespace muster::job
