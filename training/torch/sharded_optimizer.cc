#include "muster/training/sharded_optimizer.h"

#include <torch/torch.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <mutex>
#include <numeric>
#include <set>
#include <sstream>
#include <utility>
#include <vector>

#include "bucket.h"
#include "bucket_plan.h"
#include "checkpoint_content.h"
#include "checkpoint_file.h"
#include "describe.h"
#include "exchange.h"
#include "parameters.h"
#include "shard_bucket.h"

namespace muster::training {
namespace {

using collective::DataType;
using collective::Error;
using collective::ErrorCode;
using collective::ReduceOp;
using collective::Result;
using collective::Session;
using collective::Status;
using collective::Ticket;

// The first line of FOLDER/checkpoint: the number of the checkpoint, and of the ranks that wrote
// it.
struct Manifest {
  std::uint64_t number = 0;
  int ranks = 0;
};

std::string line_of(const Manifest& manifest) {
  return "sharded " + std::to_string(manifest.number) + " " + std::to_string(manifest.ranks);
}

std::optional<Manifest> manifest_of(const CheckpointContent& content) {
  std::istringstream text(content.lines.empty() ? "" : content.lines.front());
  std::string word;
  Manifest manifest;
  text >> word >> manifest.number >> manifest.ranks;
  if (!text || word != "sharded" || manifest.ranks < 1) return std::nullopt;
  return manifest;
}

std::string shard_folder(const std::string& folder, const Manifest& manifest, int rank) {
  return folder + "/shard-" + std::to_string(manifest.number) + "-" + std::to_string(rank) +
         "-of-" + std::to_string(manifest.ranks);
}

void remove_other_shards(const std::string& folder, const Manifest& manifest) {
  remove_other_checkpoints(folder, "shard-#-#-of-#",
                           "shard-" + std::to_string(manifest.number) + "-");
}

// "piece 128 64 3 exp_avg,exp_avg_sq layer.weight": begin, length, step, the names of the values.
struct PieceLine {
  std::int64_t begin = 0;
  std::int64_t length = 0;
  std::int64_t step = 0;
  std::vector<std::string> values;  // empty: no state
  bool exists = false;
  std::string parameter;
};

std::string line_of(const ShardPiece& piece, const TensorState& state) {
  std::string names;
  for (const auto& [name, value] : state.values) names += (names.empty() ? "" : ",") + name;
  if (names.empty()) names = state.exists ? "+" : "-";
  return "piece " + std::to_string(piece.begin) + " " + std::to_string(piece.length) + " " +
         std::to_string(state.step) + " " + names + " " + piece.parameter.name;
}

std::optional<PieceLine> piece_of(const std::string& line) {
  std::istringstream text(line);
  std::string word;
  std::string names;
  PieceLine piece;
  text >> word >> piece.begin >> piece.length >> piece.step >> names;
  std::getline(text >> std::ws, piece.parameter);
  if (!text || word != "piece" || piece.begin < 0 || piece.length < 1) return std::nullopt;
  piece.exists = names != "-";
  if (!piece.exists || names == "+") return piece;
  std::istringstream list(names);
  for (std::string name; std::getline(list, name, ',');) piece.values.push_back(name);
  return piece;
}

class Sharded : public ShardedOptimizer {
 public:
  Sharded(Session& session, torch::nn::Module& model, torch::optim::Optimizer& optimizer,
          std::vector<NamedTensor> parameters, OptimizerSettings settings, int stage)
      : session_(session),
        model_(model),
        optimizer_(optimizer),
        parameters_(std::move(parameters)),
        settings_(std::move(settings)),
        passes_(parameters_.size()),
        has_gradient_(parameters_.size()) {
    make_buckets(stage == 1);
    give_pieces();
    for (std::uint32_t i = 0; i < parameters_.size(); ++i) {
      hooks_.add(parameters_[i].tensor, [this, i] { ready(i); });
    }
  }

  ~Sharded() override {
    for (std::size_t g = 0; g < originals_.size(); ++g) {
      optimizer_.param_groups()[g].params() = originals_[g];
    }
  }

  void zero_grad() override {
    for (const auto& group : originals_) reset_gradients(group);
    for (const auto& group : optimizer_.param_groups()) reset_gradients(group.params());
  }

  Status step() override {
    const std::lock_guard lock(mutex_);
    Status stepped = fault_ ? Status(*fault_) : check_trained();
    if (stepped) stepped = step_all();
    if (!stepped) fault_ = stepped.error();
    return stepped;
  }

  std::size_t own_elements() const override {
    std::int64_t own = 0;
    for (const auto& bucket : buckets_) {
      for (const ShardPiece& piece : bucket->pieces()) own += piece.length;
    }
    return static_cast<std::size_t>(own);
  }

  std::size_t elements() const override {
    std::int64_t all = 0;
    for (const NamedTensor& parameter : parameters_) all += parameter.tensor.numel();
    return static_cast<std::size_t>(all);
  }

  Status save(const std::string& folder, const Progress& progress) override {
    Manifest manifest{1, session_.size()};
    Status found;
    if (session_.rank() == 0) {
      const auto before = read_checkpoint(folder);
      if (!before) {
        found = before.error();
      } else if (*before) {
        if (const auto old = manifest_of(**before)) manifest.number = old->number + 1;
      }
    }
    if (Status shared = share_status(session_, name("number.status"), found, 0); !shared) {
      return shared;
    }
    const Result<std::string> number =
        broadcast_bytes(session_, name("number"), std::to_string(manifest.number), 0);
    if (!number) return number.error();
    manifest.number = std::stoull(*number);
    Status mine = make_folder(folder);
    if (mine) mine = write_shard(shard_folder(folder, manifest, session_.rank()));
    if (Status written = first_of(session_, name("written"), mine); !written) return written;
    Status whole;
    if (session_.rank() == 0) {
      whole = write_whole(folder, manifest, progress);
      if (whole) remove_other_shards(folder, manifest);
    }
    return share_status(session_, name("saved"), whole, 0);
  }

  Result<std::optional<Progress>> resume(const std::string& folder) override {
    Result<std::optional<Progress>> found = read_whole(folder);
    const Status mine = found ? Status() : Status(found.error());
    if (Status read = first_of(session_, name("read"), mine); !read) return read.error();
    const Result<std::vector<std::string>> seen =
        gather(session_, name("seen"), *found ? "yes" : "no");
    if (!seen) return seen.error();
    for (std::size_t rank = 1; rank < seen->size(); ++rank) {
      if ((*seen)[rank] == seen->front()) continue;
      return Error{ErrorCode::kMismatch,
                   "only some ranks see a checkpoint in " + folder + ": rank 0 and rank " +
                       std::to_string(rank) + " differ",
                   "use a folder that all ranks see"};
    }
    return found;
  }

 private:
  std::string name(const char* what) const { return settings_.name + "." + what; }

  void make_buckets(bool keeps) {
    std::vector<std::uint32_t> order(parameters_.size());
    std::iota(order.rbegin(), order.rend(), std::uint32_t{0});
    const auto plan = plan_buckets(shapes_of(parameters_), order, settings_.bucket_bytes);
    bucket_of_.resize(parameters_.size());
    for (const BucketPlan& planned : plan) {
      std::vector<ShardBucket::Member> members;
      for (const std::uint32_t member : planned) {
        bucket_of_[member] = buckets_.size();
        members.push_back({parameters_[member], member});
      }
      buckets_.push_back(std::make_unique<ShardBucket>(
          session_, settings_.name + "." + std::to_string(buckets_.size()), std::move(members),
          settings_.compression, keeps));
    }
    begin_round();
  }

  // The optimizer updates this rank's pieces in place of the parameters.
  void give_pieces() {
    std::map<const void*, torch::Tensor> piece_of_parameter;
    for (const auto& bucket : buckets_) {
      for (const ShardPiece& piece : bucket->pieces()) {
        piece_of_parameter[piece.parameter.tensor.unsafeGetTensorImpl()] = piece.values;
      }
    }
    for (auto& group : optimizer_.param_groups()) {
      originals_.push_back(group.params());
      std::vector<torch::Tensor> pieces;
      for (const torch::Tensor& parameter : group.params()) {
        const auto found = piece_of_parameter.find(parameter.unsafeGetTensorImpl());
        if (found != piece_of_parameter.end() && found->second.defined()) {
          pieces.push_back(found->second);
        }
      }
      trained_.merge(identities_of(pieces));
      group.params() = std::move(pieces);
    }
    for (const NamedTensor& parameter : parameters_) {
      trained_.insert(parameter.tensor.unsafeGetTensorImpl());
    }
  }

  // Parameters of the optimizer that were not trained when it was divided have no piece, and neither
  // have those of groups that it got later.
  Status check_trained() const {
    for (std::size_t g = 0; g < optimizer_.param_groups().size(); ++g) {
      if (g < originals_.size()) {
        if (Status checked = check_group(trained_, model_, originals_[g], g); !checked) {
          return checked;
        }
      }
      const Status checked =
          check_group(trained_, model_, optimizer_.param_groups()[g].params(), g);
      if (!checked) return checked;
    }
    return {};
  }

  void begin_round() {
    std::fill(passes_.begin(), passes_.end(), 0);
    missing_.clear();
    for (const auto& bucket : buckets_) missing_.push_back(bucket->size());
  }

  // Called on a thread of the autograd engine when a pass has added to a gradient.
  void ready(std::uint32_t parameter) {
    const std::lock_guard lock(mutex_);
    if (fault_) return;
    const int passes = ++passes_[parameter];
    if (passes > settings_.passes_per_step) {
      fault_ =
          Error{ErrorCode::kBadArgument,
                "'" + parameters_[parameter].name + "' got gradients of " + std::to_string(passes) +
                    " passes since the last step, but passes_per_step is " +
                    std::to_string(settings_.passes_per_step),
                "call step() after each " + std::to_string(settings_.passes_per_step) +
                    " backward passes, or set passes_per_step"};
      return;
    }
    if (passes < settings_.passes_per_step) return;
    const std::size_t bucket = bucket_of_[parameter];
    if (--missing_[bucket] > 0) return;
    if (Status launched = launch(*buckets_[bucket]); !launched) fault_ = launched.error();
  }

  Status launch(ShardBucket& bucket) {
    return bucket.launch(session_, collective::Reduction(settings_.op), has_gradient_);
  }

  Status step_all() {
    for (const auto& bucket : buckets_) {
      if (bucket->is_under_way()) continue;
      if (Status launched = launch(*bucket); !launched) return launched;
    }
    const Result<Ticket> marks =
        session_.all_reduce(name("marks"), has_gradient_.data(), has_gradient_.data(),
                            has_gradient_.size(), DataType::kUInt8, ReduceOp::kMax);
    if (!marks) return marks.error();
    if (Status reduced = session_.wait(*marks); !reduced) return reduced;
    for (const auto& bucket : buckets_) {
      if (Status finished = bucket->finish(session_, has_gradient_); !finished) return finished;
      if (Status stepped = step_pieces(*bucket); !stepped) return stepped;
      if (Status begun = bucket->begin_gather(session_); !begun) return begun;
    }
    for (const auto& bucket : buckets_) {
      if (Status gathered = bucket->end_gather(session_); !gathered) return gathered;
    }
    begin_round();
    return {};
  }

  // Only pieces of this bucket have gradients now: the optimizer skips all others.
  Status step_pieces(ShardBucket& bucket) {
    try {
      optimizer_.step();
    } catch (const std::exception& thrown) {
      return Error{ErrorCode::kBadArgument,
                   std::string("the optimizer's step failed: ") + thrown.what()};
    }
    for (ShardPiece& piece : bucket.pieces()) {
      if (piece.length > 0) piece.values.mutable_grad().reset();
    }
    return {};
  }

  // --- Checkpoints ---

  Status write_shard(const std::string& folder) const {
    CheckpointContent content;
    for (const auto& bucket : buckets_) {
      for (const ShardPiece& piece : bucket->pieces()) {
        if (piece.length == 0) continue;
        const TensorState state = state_of(optimizer_, piece.values);
        content.lines.push_back(line_of(piece, state));
        std::vector<NamedTensor> tensors;
        for (const auto& [name, value] : state.values) tensors.push_back({name, value});
        content.bytes += bytes_of(tensors);
      }
    }
    return write_checkpoint(folder, content);
  }

  std::vector<std::string> lines_of_whole(const Manifest& manifest,
                                          const Progress& progress) const {
    std::vector<std::string> lines = {line_of(manifest), progress_line(progress),
                                      "optimizer " + kind_};
    for (const std::string& line : describe(tensors_of(model_))) lines.push_back(line);
    return lines;
  }

  Status write_whole(const std::string& folder, const Manifest& manifest,
                     const Progress& progress) const {
    const Result<std::string> options = option_bytes_of(optimizer_);
    if (!options) return options.error();
    return write_checkpoint(
        folder, {lines_of_whole(manifest, progress), bytes_of(tensors_of(model_)) + *options});
  }

  Result<std::optional<Progress>> read_whole(const std::string& folder) {
    const Result<std::optional<CheckpointContent>> content = read_checkpoint(folder);
    if (!content) return content.error();
    if (!*content) return std::optional<Progress>();
    const std::string path = checkpoint_path(folder);
    const std::optional<Manifest> manifest = manifest_of(**content);
    const std::vector<std::string>& lines = (*content)->lines;
    const std::optional<Progress> progress =
        lines.size() > 1 ? progress_of(lines[1]) : std::nullopt;
    if (!manifest || !progress) {
      return Error{ErrorCode::kBadArgument, path + " is not a checkpoint of a ShardedOptimizer"};
    }
    if (Status same = check_same(path, lines, lines_of_whole(*manifest, *progress), 2); !same) {
      return same.error();
    }
    const std::vector<NamedTensor> tensors = tensors_of(model_);
    const std::size_t length = length_of(tensors);
    if (length > (*content)->bytes.size()) {
      return Error{ErrorCode::kBadArgument, path + " has fewer bytes than its tensors"};
    }
    if (Status read = read_shards(folder, *manifest); !read) return read.error();
    if (Status set = restore_options(optimizer_, (*content)->bytes.substr(length)); !set) {
      return set.error();
    }
    copy_bytes_into(tensors, (*content)->bytes);
    return progress;
  }

  struct Taken {
    ShardPiece* piece;
    TensorState state;
    std::int64_t covered = 0;
  };

  Status read_shards(const std::string& folder, const Manifest& manifest) {
    std::map<std::string, Taken> needed;
    for (const auto& bucket : buckets_) {
      for (ShardPiece& piece : bucket->pieces()) {
        if (piece.length > 0) needed[piece.parameter.name] = {&piece, {}, 0};
      }
    }
    for (int rank = 0; rank < manifest.ranks; ++rank) {
      const std::string shard = shard_folder(folder, manifest, rank);
      const Result<std::optional<CheckpointContent>> content = read_checkpoint(shard);
      if (!content) return content.error();
      if (!*content) {
        return Error{ErrorCode::kBadArgument, "the checkpoint lacks " + checkpoint_path(shard)};
      }
      if (Status taken = take(checkpoint_path(shard), **content, needed); !taken) return taken;
    }
    for (const auto& [parameter, taken] : needed) {
      if (taken.covered == taken.piece->length) continue;
      return Error{ErrorCode::kBadArgument, "the checkpoint in " + folder + " has " +
                                                std::to_string(taken.covered) + " of " +
                                                std::to_string(taken.piece->length) +
                                                " elements of '" + parameter + "'"};
    }
    for (auto& [parameter, taken] : needed) {
      set_state(optimizer_, taken.piece->values, taken.state);
    }
    return {};
  }

  Status take(const std::string& path, const CheckpointContent& content,
              std::map<std::string, Taken>& needed) const {
    const torch::NoGradGuard no_grad;
    std::map<std::string, torch::TensorOptions> options_of;
    for (const NamedTensor& parameter : parameters_) {
      options_of[parameter.name] = parameter.tensor.options().requires_grad(false);
    }
    std::size_t at = 0;
    for (const std::string& line : content.lines) {
      const Error damaged{ErrorCode::kBadArgument, path + " has an invalid line '" + line + "'"};
      const std::optional<PieceLine> stored = piece_of(line);
      if (!stored || !options_of.contains(stored->parameter)) return damaged;
      const torch::TensorOptions& options = options_of[stored->parameter];
      const std::size_t bytes =
          static_cast<std::size_t>(stored->length) * options.dtype().itemsize();
      if (stored->length > parameter_length(stored->parameter)) return damaged;
      if (content.bytes.size() - at < bytes * stored->values.size()) return damaged;
      const std::size_t first = std::exchange(at, at + bytes * stored->values.size());
      const auto found = needed.find(stored->parameter);
      if (found == needed.end()) continue;
      Taken& taken = found->second;
      const std::int64_t begin = std::max(stored->begin, taken.piece->begin);
      const std::int64_t end =
          std::min(stored->begin + stored->length, taken.piece->begin + taken.piece->length);
      if (end <= begin) continue;
      taken.covered += end - begin;
      taken.state.exists = stored->exists;
      taken.state.step = stored->step;
      for (std::size_t i = 0; i < stored->values.size(); ++i) {
        const torch::Tensor values = torch::empty({stored->length}, options);
        std::memcpy(values.data_ptr(), content.bytes.data() + first + i * bytes, bytes);
        value_of(taken, stored->values[i])
            .narrow(0, begin - taken.piece->begin, end - begin)
            .copy_(values.narrow(0, begin - stored->begin, end - begin));
      }
    }
    return {};
  }

  std::int64_t parameter_length(const std::string& parameter) const {
    for (const NamedTensor& known : parameters_) {
      if (known.name == parameter) return known.tensor.numel();
    }
    return 0;
  }

  static torch::Tensor value_of(Taken& taken, const std::string& name) {
    for (auto& [known, value] : taken.state.values) {
      if (known == name) return value;
    }
    return taken.state.values
        .emplace_back(name, torch::zeros({taken.piece->length}, taken.piece->values.options()))
        .second;
  }

  Session& session_;
  torch::nn::Module& model_;
  torch::optim::Optimizer& optimizer_;
  const std::string kind_ = describe(optimizer_);  // before its parameters become pieces
  std::vector<NamedTensor> parameters_;
  const OptimizerSettings settings_;

  std::mutex mutex_;
  std::vector<int> passes_;                 // of each parameter, since the last step
  std::vector<std::uint8_t> has_gradient_;  // of each parameter
  std::vector<std::size_t> bucket_of_;      // each parameter
  std::vector<std::unique_ptr<ShardBucket>> buckets_;
  std::vector<std::size_t> missing_;                   // gradients that each bucket still waits for
  std::vector<std::vector<torch::Tensor>> originals_;  // the parameters of the optimizer's groups
  std::set<const void*> trained_;                      // parameters_ and the pieces
  std::optional<Error> fault_;
  ReadyHooks hooks_;  // last, so that it is destroyed before the members that the hooks use
};

}  // namespace

Result<std::unique_ptr<ShardedOptimizer>> ShardedOptimizer::over(Session& session,
                                                                 torch::nn::Module& model,
                                                                 torch::optim::Optimizer& optimizer,
                                                                 const OptimizerSettings& settings,
                                                                 int stage) {
  if (Status checked = check(settings); !checked) return checked.error();
  if (has_feedback(settings.compression)) {
    return Error{ErrorCode::kBadArgument,
                 "a ShardedOptimizer cannot compress gradients with error feedback",
                 "use kFloat16 or kBFloat16, or a DistributedOptimizer"};
  }
  if (stage != 1 && stage != 2) {
    return Error{ErrorCode::kBadArgument, "stage is " + std::to_string(stage) + ", not 1 or 2"};
  }
  if (!is_divisible(optimizer)) {
    return Error{ErrorCode::kBadArgument,
                 describe(optimizer) + " cannot be divided: it may compute with whole tensors",
                 "use SGD, Adam, AdamW or RMSprop"};
  }
  if (!optimizer.state().empty()) {
    return Error{ErrorCode::kBadArgument, "the optimizer has made steps and has a state",
                 "create the ShardedOptimizer before the first step"};
  }
  Result<std::vector<NamedTensor>> parameters = parameters_of(model, optimizer);
  if (!parameters) return parameters.error();
  std::vector<std::string> lines = description(*parameters, settings);
  lines.push_back("sharded in stage " + std::to_string(stage) + ", " + describe(optimizer));
  if (Status agreed = agree(session, settings.name + ".agree", "parameters or settings", lines);
      !agreed) {
    return agreed.error();
  }
  return std::unique_ptr<ShardedOptimizer>(std::make_unique<Sharded>(
      session, model, optimizer, *std::move(parameters), settings, stage));
}

}  // namespace muster::training
