// A parameter server in another process, for tests that end it.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <string>
#include <vector>

#include "parameter_server/rpc/test_job.h"

namespace muster::parameter_server::testing {

/// Is killed with this object. The server has the key kKey.
class Process {
 public:
  /// `variables`: NAME=value, in addition to those of this process.
  explicit Process(std::vector<std::string> variables = {}) {
    std::array<int, 2> input = {};
    std::array<int, 2> output = {};
    if (::pipe2(input.data(), O_CLOEXEC) != 0 || ::pipe2(output.data(), O_CLOEXEC) != 0) return;
    posix_spawn_file_actions_t actions;
    ::posix_spawn_file_actions_init(&actions);
    ::posix_spawn_file_actions_adddup2(&actions, input[0], STDIN_FILENO);
    ::posix_spawn_file_actions_adddup2(&actions, output[1], STDOUT_FILENO);
    std::string program = TEST_SERVER;
    const std::array<char*, 2> arguments = {program.data(), nullptr};
    // The first of two variables with the same name counts.
    std::vector<char*> environment;
    for (std::string& variable : variables) environment.push_back(variable.data());
    for (char** variable = environ; *variable != nullptr; ++variable) {
      environment.push_back(*variable);
    }
    environment.push_back(nullptr);
    ::posix_spawn(&pid_, program.c_str(), &actions, nullptr, arguments.data(), environment.data());
    ::posix_spawn_file_actions_destroy(&actions);
    ::close(input[0]);
    ::close(output[1]);
    output_ = output[0];
    const std::string line = std::string(kKey) + "\n";
    EXPECT_EQ(::write(input[1], line.data(), line.size()), static_cast<ssize_t>(line.size()));
    ::close(input[1]);
    address = next_line();
  }
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;
  ~Process() {
    kill();
    ::close(output_);
  }

  void kill() {
    if (pid_ > 0) end_by(SIGKILL);
  }

  /// Sends the signal and waits for the end. Returns the exit code; -1 if a signal ended it.
  int end_by(int signal) {
    if (pid_ <= 0) return -1;
    ::kill(pid_, signal);
    return exit_code();
  }

  /// Waits for the end.
  int exit_code() {
    int status = 0;
    ::waitpid(pid_, &status, 0);
    pid_ = 0;
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }

  /// Returns when all threads of the process are stopped.
  void stop() const {
    ::kill(pid_, SIGSTOP);
    ::waitpid(pid_, nullptr, WUNTRACED);
  }

  /// The next line that it prints.
  std::string next_line() const {
    std::string line;
    char letter = 0;
    while (::read(output_, &letter, 1) == 1 && letter != '\n') line += letter;
    return line;
  }

  std::string address = {};

 private:
  pid_t pid_ = 0;
  int output_ = -1;
};

}  // namespace muster::parameter_server::testing
