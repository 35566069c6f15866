// For the tests of jobs that use secrets: a server with accounts and sealed secrets.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "access/secret_box.h"
#include "control/accounts.h"
#include "control/test_parts.h"
#include "words/sentence.h"

namespace muster::control {

class WithAccounts : public Scheduling {
 protected:
  WithAccounts() { make_with(box_); }

  /// Another server over the same store and machines, with the key of `box`.
  void make_with(const access::SecretBox& box, SiteFacts site = {.user = "ada"}) {
    controller_ = nullptr;
    accounts_ = std::make_unique<Accounts>(Accounts::Dependencies{
        .loop = loop_, .store = store_, .clock = clock_, .random = random_, .box = box});
    controller_ = std::make_unique<Controller>(ControllerDependencies{.loop = loop_,
                                                                      .store = store_,
                                                                      .engine = engine_,
                                                                      .clock = clock_,
                                                                      .random = random_,
                                                                      .accounts = accounts_.get()},
                                               std::move(site));
  }

  /// The server and its event loop end; make_with() starts another one.
  void be_killed() {
    controller_ = nullptr;
    accounts_ = nullptr;
    loop_owner_.emplace();  // in its old place
  }

  static access::SecretBox::Key key_of(uint8_t byte) {
    access::SecretBox::Key key{};
    key.fill(byte);
    return key;
  }

  /// The whole state of a job as text.
  static std::string text_of(const job::Job& job) {
    std::string text = words::sentence(job.reason);
    for (const std::string& detail : words::details(job.reason)) text += "\n" + detail;
    for (const job::Event& event : job.events) text += "\n" + words::sentence(event.what);
    for (const auto& [variable, value] : job.spec.environment) text += "\n" + variable + value;
    if (job.failure)
      text += "\n" + words::sentence(job.failure->cause) + "\n" + job.failure->advice;
    return text;
  }

  access::SecretBox box_{key_of(1)};
  std::unique_ptr<Accounts> accounts_;
};

}  // namespace muster::control
