#include "job/validate.h"

#include <string>

#include "job/checker.h"
#include "job/spec_limits.h"
#include "job/text_size.h"
#include "job/validate_container.h"
#include "job/validate_labels.h"
#include "job/validate_roles.h"
#include "job/validate_scheduling.h"
#include "job/validate_secrets.h"
#include "job/validate_slurm.h"
#include "job/validate_volumes.h"

namespace muster::job {

namespace {

// Linux host names hold 64 bytes and DNS labels 63; "-launcher" and "-worker-999" must fit behind.
constexpr size_t kMaxJobName = 48;

// Jobs are kept in memory and told whole: what they are given in files is not in them.
constexpr size_t kMostText = 256 << 10;

void check_job_names(const JobSpec& spec, Checker& check) {
  check.require(is_job_name(spec.name), "name",
                "'" + spec.name + "' is not a job name; use 1 to " + std::to_string(kMaxJobName) +
                    " of a-z, 0-9 and '-', with a letter or digit at both ends");
  check.require(is_dns_label(spec.project, 63), "project",
                "'" + spec.project + "' is not a project name; use a-z, 0-9 and '-'");
}

void check_size(const JobSpec& spec, Checker& check) {
  const size_t size = text_size(spec);
  check.require(size <= kMostText, "command",
                "is " + std::to_string(size) +
                    " bytes long together with the environment and all else; at most " +
                    std::to_string(kMostText) + " are kept: put the rest into a file");
}

void check_places_and_times(const JobSpec& spec, Checker& check) {
  check.require(spec.folder.starts_with('/') && !has_nul(spec.folder), "folder",
                "'" + spec.folder + "' is not an absolute path");
  check.require(spec.start_timeout.count() > 0 && spec.start_timeout.count() <= kDayInMs,
                "start_timeout", "give a time between 1ms and 24h");
  constexpr int64_t kTenYears = 3650 * kDayInMs;
  check.require(
      !spec.keep_for || (spec.keep_for->count() >= 0 && spec.keep_for->count() <= kTenYears),
      "keep_for", "give a time between 0s and 3650d");
  check.require(spec.grace.count() >= 0 && spec.grace.count() <= kDayInMs, "grace",
                "give a time between 0s and 24h");
}

}  // namespace

bool is_job_name(std::string_view text) {
  return is_dns_label(text, kMaxJobName);
}

std::vector<Fault> validate(const JobSpec& spec) {
  Checker check;
  check_job_names(spec, check);
  check_programs(spec, check);
  check_shape(spec, check);
  check_container(spec, check);
  check_slurm(spec.slurm, check);
  check_scheduling(spec, check);
  check_environments(spec, check);
  check_size(spec, check);
  check_secrets(spec, check);
  check_volumes(spec, check);
  check_labels(spec, check);
  check_places_and_times(spec, check);
  return check.take();
}

}  // namespace muster::job
