// Whole commands of Gradient, in a home of their own, against a FakeServer.
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
    // Whoever runs the tests may sit before a terminal; nobody is to be asked there.
    input_before_.reset(::dup(STDIN_FILENO));
    type("");
  }

  void TearDown() override {
    for (const char* name : kUnset) ::unsetenv(name);
    ::setenv("HOME", home_before_.c_str(), 1);
    ::dup2(input_before_.get(), STDIN_FILENO);
    cli::Cli::TearDown();
  }

  /// What the next command reads from its standard input, a pipe.
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

/// A job as the server has it. Each is a second newer than the one before.
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
