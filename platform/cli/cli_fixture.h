// Tests of whole commands, each in its own folder, against a FakeServer.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "cli/cli.h"
#include "cli/fake_server.h"

namespace muster::cli {

using Words = std::vector<std::string>;

struct Outcome {
  int code = 0;
  std::string out;
  std::string err;
};

class Cli : public testing::Test {
 protected:
  void SetUp() override {
    std::array<char, 32> name{"/tmp/muster-cli-XXXXXX"};
    ASSERT_NE(::mkdtemp(name.data()), nullptr);
    folder_ = name.data();
    ::setenv("MUSTER_STATE_DIR", folder_.c_str(), 1);
    ::setenv("XDG_CONFIG_HOME", (folder_ / "config").c_str(), 1);
    ::unsetenv("MUSTER_PROJECT");
  }

  void TearDown() override {
    server_.reset();
    ::unsetenv("MUSTER_STATE_DIR");
    ::unsetenv("XDG_CONFIG_HOME");
    std::filesystem::remove_all(folder_);
  }

  void serve(Script script) {
    server_ = std::make_unique<FakeServer>(folder_ / "muster.sock", std::move(script));
  }

  /// The outcome of a program (muster or a dialect) with these arguments.
  static Outcome outcome_of(int (*program)(const Words&, const Hooks&), const Words& words) {
    testing::internal::CaptureStdout();
    testing::internal::CaptureStderr();
    const int code = program(
        words, {.serve = [](const config::ServeOptions&, const config::ReadAgain&) { return 0; },
                .version = "1"});
    return {.code = code,
            .out = testing::internal::GetCapturedStdout(),
            .err = testing::internal::GetCapturedStderr()};
  }

  static Outcome muster(const Words& words) { return outcome_of(run, words); }

  int count_of(const std::string& request) {
    const auto all = server_->requests();
    return static_cast<int>(std::count(all.begin(), all.end(), request));
  }

  std::filesystem::path folder_;
  std::unique_ptr<FakeServer> server_;
};

}  // namespace muster::cli
