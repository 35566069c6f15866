#include "cli/waiting_word.h"

#include <sys/timerfd.h>
#include <unistd.h>

#include <cstdint>
#include <iostream>

#include "words/sentence.h"

namespace muster::cli {

namespace {

constexpr time_t kFirstLook = 2;  // seconds
constexpr time_t kBetweenLooks = 5;

}  // namespace

WaitingWord::WaitingWord() : timer_(::timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC)) {
  itimerspec when{};
  when.it_value.tv_sec = kFirstLook;
  when.it_interval.tv_sec = kBetweenLooks;
  ::timerfd_settime(timer_.get(), 0, &when, nullptr);
}

void WaitingWord::look(const Connection& connection, const std::string& name) {
  uint64_t count = 0;
  if (!timer_ || ::read(timer_.get(), &count, sizeof count) != sizeof count) return;
  const auto job = connection.second_client()->get(name);
  // A server that is gone is waited for elsewhere.
  if (!job) return;
  const std::string word = waiting_word(*job);
  if (word.empty()) return done();
  if (word == told_) return;
  told_ = word;
  std::cerr << "muster: " + word << std::endl;
}

std::string waiting_word(const job::Job& job) {
  if (job.phase != job::Phase::kQueued || job::is_empty(job.reason)) return {};
  return "job '" + job.spec.name + "'" + words::after_colon(job.reason);
}

}  // namespace muster::cli
