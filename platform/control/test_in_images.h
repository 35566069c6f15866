// For the tests of jobs in images: a server over an engine that runs images, which arrive when the
// test decides.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "control/test_with_accounts.h"

namespace muster::control {

inline const std::string kRegistryPassword = "s3cret pass";

class InImages : public WithAccounts {
 protected:
  InImages() {
    engine_.images = true;
    engine_.reach_of_all = launch::Reach::kNames;
    add(project_of("red", 2));
    EXPECT_TRUE(accounts_->set_secret("red", "registry", kRegistryPassword, {}));
  }

  /// Another server over the same store and machines.
  void come_back() {
    engine_.prepared = nullptr;
    make_with(box_);
    ASSERT_TRUE(controller_->recover());
    settle();
  }

  static job::JobSpec in_image(job::JobSpec spec) {
    spec.image = "horovod:0.28";
    return spec;
  }
  static job::JobSpec two_tasks(const std::string& name = "dist") {
    job::JobSpec spec = in_image(mpi(name, "red", 1));
    spec.command = {"mpirun", "-np", "1", "train"};
    return spec;
  }

  static launch::ImageFacts facts_of(const std::string& image) {
    return {.image = image,
            .id = "sha256:1",
            .folder = "/",
            .account = {},
            .sshd = "/usr/sbin/sshd",
            .has_ssh = true,
            .has_shell = true};
  }

  /// The engine has fetched the requested images.
  void bring_all(const std::function<void(launch::ImageFacts&)>& change = [](launch::ImageFacts&) {
  }) {
    std::vector<launch::ImageFacts> facts;
    for (const engine::ImageRequest& request : engine_.image_requests) {
      facts.push_back(facts_of(request.image));
      change(facts.back());
    }
    engine_.prepared(std::move(facts));
    settle();
  }

  void bring_nothing(base::Error error) {
    engine_.prepared(std::move(error));
    settle();
  }

  size_t prepared_times() const {
    return static_cast<size_t>(
        std::count_if(engine_.calls.begin(), engine_.calls.end(),
                      [](const std::string& call) { return call.starts_with("prepare"); }));
  }
};

}  // namespace muster::control
