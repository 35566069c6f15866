#include "progress.h"

#include <unistd.h>

#include <cstdio>
#include <string>

namespace muster::digits {
namespace {

constexpr std::size_t kBarWidth = 30;
// Often enough to look alive, seldom enough to cost nothing.
constexpr std::chrono::milliseconds kBarEvery{100};

int digits_of(int number) {
  return static_cast<int>(std::to_string(number).size());
}

}  // namespace

Progress::Progress(int epochs) : epochs_(epochs), on_terminal_(::isatty(STDERR_FILENO) == 1) {}

void Progress::show_step(int epoch, std::size_t step, std::size_t steps) {
  const auto now = std::chrono::steady_clock::now();
  if (!on_terminal_ || now < next_bar_) return;
  next_bar_ = now + kBarEvery;
  bar_is_shown_ = true;
  const std::string bar(kBarWidth * step / steps, '=');
  std::fprintf(stderr, "\repoch %*d/%d  [%-*s] %zu/%zu", digits_of(epochs_), epoch, epochs_,
               static_cast<int>(kBarWidth), bar.c_str(), step, steps);
  std::fflush(stderr);
}

void Progress::wipe_bar() {
  if (!bar_is_shown_) return;
  std::fputs("\r\x1b[K", stderr);
  std::fflush(stderr);
  bar_is_shown_ = false;
}

void Progress::show_epoch(const EpochReport& report) {
  wipe_bar();
  std::printf("epoch %*d/%d  loss %.4f  train %6.2f %%  test %6.2f %%  %8.0f images/s\n",
              digits_of(epochs_), report.epoch, epochs_, report.loss, 100 * report.train_accuracy,
              100 * report.test_accuracy, report.images_per_second);
  std::fflush(stdout);
}

}  // namespace muster::digits
