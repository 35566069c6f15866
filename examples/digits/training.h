// A training: its options, its results, their output, and a checksum of the weights; independent of
// the strategy that combines the gradients.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace muster::digits {

/// The momentum of the gradients (B. Polyak, 1964).
inline constexpr double kMomentum = 0.9;

struct Settings {
  int epochs = 40;
  std::size_t batch = 16;  // images per step on each training process
  double learning_rate = 0.03;
  int hidden = 128;
  std::uint64_t seed = 1;
};

/// An epoch: all training processes together have used as many images as the training set has.
/// nullopt: not measured, because the reporting process joined after the last step.
struct EpochReport {
  int epoch;             // from 1
  double seconds;        // since the reporting process began to train, including tests
  std::uint64_t images;  // used by all processes since the beginning, counting repetitions
  std::optional<double> loss;
  std::optional<double> train_accuracy;  // 0 .. 1, of the batches when they were used
  double test_accuracy;
  std::optional<double> images_per_second;  // of this epoch
};

/// Reports of a trainer, called on the training thread.
struct Observer {
  std::function<void(int epoch, std::size_t step, std::size_t steps)> on_step = {};
  std::function<void(const EpochReport&)> on_epoch = {};
};

struct Outcome {
  double test_accuracy;
  /// Used by all processes while the reporting process trained; nullopt: it joined after the last
  /// step.
  std::optional<double> images_per_second;
  std::uint64_t checksum;  // of the weights
  std::vector<float> weights;
};

// A checksum that distinguishes sets of weights.
//
// Pure.

/// FNV-1a, 64 bits, over the bytes (G. Fowler, L. C. Noll, K.-P. Vo).
std::uint64_t checksum_of(std::span<const float> weights);

/// The checksum as text: 0x and 16 digits.
std::string checksum_text(std::uint64_t checksum);

// The output of a training. For people: a line per epoch on standard output, and within an epoch,
// on a terminal only, a bar on standard error, which that line replaces. For programs (--output
// json): one object per line on standard output, for each epoch and at the end.
//
// Thread-safety: one thread at a time.

enum class Output { kText, kJson };

/// "1 epoch", "2 epochs": the number and a noun, with an s unless the number is 1.
std::string count_of(std::uint64_t number, std::string_view noun);

/// The line of an epoch for people, without a newline. A number that was not measured is "-".
std::string epoch_text(const EpochReport& report, int epochs);

/// The object of an epoch, without a newline: epoch, seconds, images, images_per_second, loss,
/// train_accuracy, test_accuracy. A number that was not measured, or that JSON cannot represent (an
/// infinite loss), is null.
std::string epoch_json(const EpochReport& report);

/// The lines at the end for people, each with its newline. `holders` names the processes with these
/// weights, for example "on all 2 ranks"; empty: it is left out.
std::string outcome_text(const Outcome& outcome, std::string_view holders);

/// The object at the end: test_accuracy, images_per_second, weights_checksum.
std::string outcome_json(const Outcome& outcome);

class Progress {
 public:
  /// `epochs` is the number of epochs of the whole training.
  Progress(int epochs, Output output);

  void show_step(int epoch, std::size_t step, std::size_t steps);
  void show_epoch(const EpochReport& report);

  /// `holders` as for outcome_text().
  void show_outcome(const Outcome& outcome, std::string_view holders);

 private:
  void wipe_bar();

  int epochs_;
  Output output_;
  bool on_terminal_;
  bool bar_is_shown_ = false;
  std::chrono::steady_clock::time_point next_bar_ = {};
};

}  // namespace muster::digits
