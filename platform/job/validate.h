// Every fault of a spec at once, each with the path of its field.
//
// Pure. The field paths are those of the YAML file and of the API, so whoever shows a fault can
// point at the line it came from.
#pragma once

#include <cstddef>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "job/checker.h"
#include "job/spec.h"

namespace muster::job {

using base::Fault;

/// Bounds that keep one job from taking the machine down; generous for what they guard.
inline constexpr int kMaxWorkers = 1000;  ///< together with the parameter servers
inline constexpr int kMaxSlotsPerWorker = 1024;
inline constexpr int kMaxSecrets = 100;
inline constexpr int kMaxVolumes = 100;
inline constexpr int kMaxLabels = 64;

/// Empty when the spec can be run.
std::vector<Fault> validate(const JobSpec& spec);

/// Whether `text` is a DNS label (RFC 1123: a-z, 0-9, '-', a letter or digit at both ends) short
/// enough to carry "-worker-999" and stay a host name.
bool is_job_name(std::string_view text);

/// Whether a label can be called so: text of 1 to 128 bytes without '=' and control characters.
bool is_label_name(std::string_view text);
/// Text of at most 256 bytes without control characters; empty: the label is a tag.
bool is_label_value(std::string_view text);

/// Whether a secret can be called so: as a variable, of at most 128 characters.
bool is_secret_name(std::string_view text);

// The part of validate() that is about containers: who runs in an image, who fetches it, how far
// its containers are set apart, and how ranks are started in them.
//
// Pure.

void check_container(const JobSpec& spec, Checker& check);

// The part of validate() that is about labels and annotations.
//
// Pure.

/// Text that a line of a table can show: UTF-8 without control characters, those of Latin-1 (which
/// are two bytes, C2 80 to C2 9F) among them.
bool is_shown(std::string_view text);

void check_labels(const JobSpec& spec, Checker& check);

// The part of validate() that is about what each role runs: its image, its words, its environment,
// and which roles the kind of the job has.
//
// Pure.

/// Images and words, and that no task would have nothing to run.
void check_programs(const JobSpec& spec, Checker& check);
/// How many tasks of which role, and what belongs to no task of this kind.
void check_shape(const JobSpec& spec, Checker& check);
void check_environments(const JobSpec& spec, Checker& check);

// The part of validate() that is about when and where a job runs.
//
// Pure.

/// `field`: where they stand, "resources".
void check_resources(const Resources& resources, const std::string& field, Checker& check);
void check_scheduling(const JobSpec& spec, Checker& check);

// The part of validate() that is about secrets: what they are called, and where a task finds them.
//
// Pure.

void check_secrets(const JobSpec& spec, Checker& check);

// The part of validate() that is about what is said to Slurm: names that may stand in a line of
// #SBATCH, in an argument and in a table as they are.
//
// Pure.

void check_slurm(const SlurmSpec& slurm, Checker& check);

/// Whether it may be the name of a partition, an account, a QOS or a reservation: letters, digits
/// and "_-.+:@", none of "-." first.
bool is_slurm_name(std::string_view text);

// The part of validate() that is about volumes: where they come from, and where tasks find them.
//
// Pure.

void check_volumes(const JobSpec& spec, Checker& check);

// How much text a spec is: jobs are kept in memory and told whole, so what is bounded is this.
//
// Pure.

/// The bytes of everything in `spec` that may be as long as one likes.
size_t text_size(const JobSpec& spec);

}  // namespace muster::job
