#include "dialects/runai/sentences.h"

#include <utility>

#include "base/text.h"
#include "cli/common/report.h"
#include "dialects/runai/status.h"
#include "words/sentence.h"

namespace muster::dialects::runai {

using base::Error;
using base::ErrorCode;

namespace {

Error missing(const std::string& job, const std::string& project, const std::string& placeholder) {
  return {.code = ErrorCode::kNotFound,
          .what = job + " does not exist in project " + project +
                  ". If the job exists in a different project, use -p " + placeholder + "."};
}

}  // namespace

Error usage_error_of(const Asked& asked) {
  return cli::usage_error(asked.arguments.path, asked.reader.faults(), "runai");
}

Error no_such_project(const std::string& project) {
  return {.code = ErrorCode::kNotFound,
          .what = "project " + project +
                  " was not found. Please run 'runai list project' to view all avaliable projects",
          .advice = "to create it: muster project create " + base::shell_joined({project})};
}

Error no_such_job(const std::string& job, const std::string& project) {
  return missing("The job " + job, project, "<project name>");
}

Error no_such_job_to_delete(const std::string& job, const std::string& project) {
  return missing("Job " + job, project, "<project-name>");
}

Error job_not_found(const std::string& job) {
  // The blank at its end is Run:AI's.
  return {.code = ErrorCode::kNotFound, .what = "Job " + job + " not found "};
}

Error no_such_pod(const std::string& pod, const job::Job& job) {
  std::string pods;
  for (const job::Task& task : job.tasks) pods += (pods.empty() ? "" : ", ") + task.hostname;
  return {.code = ErrorCode::kNotFound,
          .what = "there is no pod '" + pod + "' in job '" + job.spec.name + "'",
          .advice = pods.empty() ? "it has none" : "its pods: " + pods};
}

Error pod_not_running(const job::Job& job, const job::Task& task) {
  return {.code = ErrorCode::kConflict,
          .what = "Unable to run command in a pod that is not running",
          .advice = "pod " + task.hostname + " is " + status_of(job, task) +
                    "; see: runai describe job " + job.spec.name + " -p " + job.spec.project};
}

Error nothing_printed_yet(const job::Job& job) {
  return {.code = ErrorCode::kConflict,
          .what = "job " + job.spec.name + " is " + status_of(job) +
                  ", and none of its pods has printed anything",
          .advice = "please use \"runai describe job\" to get more information."};
}

Error start_timed_out(const job::Job& job) {
  return {.code = ErrorCode::kTimeout,
          .what = "Timeout waiting for job to start running",
          .advice = "it is " + status_of(job) + words::after_colon(job.reason) +
                    "; it goes on without you: runai attach " + job.spec.name};
}

Error not_here(const std::string& what, const std::string& advice) {
  return {.code = ErrorCode::kRefused, .what = what, .advice = advice};
}

std::string no_terminal(const std::string& pod) {
  return "Unable to use a TTY - container " + pod + " did not allocate one";
}

}  // namespace muster::dialects::runai
