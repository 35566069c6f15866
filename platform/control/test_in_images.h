// What the tests of jobs in images share: a server over an engine that runs images, which a test
// brings by hand.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "control/test_parts.h"

namespace muster::control {

inline const std::string kRegistryPassword = "s3cret pass";

class InImages : public Scheduling {
 protected:
  InImages() {
    engine_.images = true;
    engine_.reach_of_all = launch::Reach::kNames;
    make_with_accounts();
    add(project_of("red", 2));
    EXPECT_TRUE(accounts_->set_secret("red", "registry", kRegistryPassword, {}));
  }

  void make_with_accounts() {
    controller_ = nullptr;
    accounts_ = std::make_unique<Accounts>(Accounts::Parts{
        .loop = loop_, .store = store_, .clock = clock_, .random = random_, .box = box_});
    controller_ = std::make_unique<Controller>(Parts{.loop = loop_,
                                                     .store = store_,
                                                     .engine = engine_,
                                                     .clock = clock_,
                                                     .random = random_,
                                                     .accounts = accounts_.get()},
                                               SiteFacts{.user = "ada"});
  }

  /// Another server over the same store and machines.
  void come_back() {
    engine_.prepared = nullptr;
    make_with_accounts();
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

  /// The engine has brought what it was asked for.
  void bring_all(const std::function<void(launch::ImageFacts&)>& change = [](launch::ImageFacts&) {
  }) {
    std::vector<launch::ImageFacts> facts;
    for (const engine::ImageWish& wish : engine_.wishes) {
      facts.push_back(facts_of(wish.image));
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

  std::string text_of(const job::Job& job) {
    std::string text = job.reason;
    for (const job::Event& event : job.events) text += "\n" + event.text;
    if (job.failure) text += "\n" + job.failure->cause + "\n" + job.failure->advice;
    return text;
  }

  access::SecretBox box_{[] {
    access::SecretBox::Key key{};
    key.fill(1);
    return key;
  }()};
  std::unique_ptr<Accounts> accounts_;
};

}  // namespace muster::control
