// Every fault of a spec at once, each with the path of its field.
//
// Pure. The field paths are those of the YAML file and of the API, so whoever shows a fault can
// point at the line it came from.
#pragma once

#include <vector>

#include "base/error.h"
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

}  // namespace muster::job
