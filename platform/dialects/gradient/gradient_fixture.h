// Whole commands of Gradient, each in its own home folder, against a FakeServer.
#pragma once

#include <fcntl.h>
#include <unistd.h>

#include <string>
#include <utility>

#include "base/unique_fd.h"
#include "cli/cli_fixture.h"
#include "dialects/gradient/gradient.h"

namespace muster::dialects::gradient {

class GradientCli : public cli::Cli {
 protected:
  void SetUp() override {
    cli::Cli::SetUp();
    for (const char* name : kUnset) ::unsetenv(name);
    home_before_ = std::getenv("HOME") == nullptr ? "" : std::getenv("HOME");
    ::setenv("HOME", folder_.c_str(), 1);
    // The tests may run on a terminal, but must not read answers from it.
    input_before_.reset(::dup(STDIN_FILENO));
    type("");
  }

  void TearDown() override {
    for (const char* name : kUnset) ::unsetenv(name);
    ::setenv("HOME", home_before_.c_str(), 1);
    ::dup2(input_before_.get(), STDIN_FILENO);
    cli::Cli::TearDown();
  }

  /// Sets the standard input of the next command, a pipe.
  static void type(const std::string& text) {
    std::array<int, 2> ends{};
    ASSERT_EQ(::pipe(ends.data()), 0);
    ASSERT_EQ(::write(ends[1], text.data(), text.size()), static_cast<ssize_t>(text.size()));
    ::close(ends[1]);
    ::dup2(ends[0], STDIN_FILENO);
    ::close(ends[0]);
  }

  static cli::Outcome gradient(const cli::Words& words) { return outcome_of(run, words); }

  static constexpr std::array<const char*, 6> kUnset{"PAPERSPACE_API_KEY", "MUSTER_SERVER",
                                                     "MUSTER_TOKEN",       "MUSTER_FINGERPRINT",
                                                     "MUSTER_CONTEXT",     "PAGER"};
  std::string home_before_;
  base::UniqueFd input_before_;
};

/// A job of the server, one second newer than the job with the previous number.
inline job::Job job_at(int second, const std::string& name, job::Phase phase) {
  job::Job job;
  job.id = "e" + name;
  job.spec.name = name;
  job.phase = phase;
  job.submitted = base::FakeClock().now() + std::chrono::seconds(second);
  if (phase != job::Phase::kQueued) job.started = job.submitted;
  job.tasks = job::tasks_of(job.spec);
  return job;
}

}  // namespace muster::dialects::gradient
