#include "muster/training/checkpoint.h"

#include <torch/torch.h>

#include <cstring>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "checkpoint_content.h"
#include "checkpoint_file.h"
#include "describe.h"
#include "exchange.h"
#include "muster/training/broadcast.h"
#include "muster/training/distributed_optimizer.h"

namespace muster::training {

using collective::Error;
using collective::ErrorCode;
using collective::Result;
using collective::Session;
using collective::Status;

namespace {

constexpr std::size_t kShownDifferences = 3;

std::string line_or_nothing(const std::vector<std::string>& lines, std::size_t index) {
  return index < lines.size() ? "'" + lines[index] + "'" : "nothing";
}

}  // namespace

std::string progress_line(const Progress& progress) {
  return "progress " + std::to_string(progress.epoch) + " " + std::to_string(progress.step) + " " +
         std::to_string(progress.samples);
}

std::optional<Progress> progress_of(const std::string& line) {
  std::istringstream text(line);
  std::string word;
  Progress progress;
  text >> word >> progress.epoch >> progress.step >> progress.samples;
  if (!text || word != "progress") return std::nullopt;
  return progress;
}

Status check_same(const std::string& path, const std::vector<std::string>& there,
                  const std::vector<std::string>& here, std::size_t first) {
  std::string differences;
  std::size_t count = 0;
  for (std::size_t i = first; i < std::max(there.size(), here.size()); ++i) {
    if (line_or_nothing(there, i) == line_or_nothing(here, i) || ++count > kShownDifferences) {
      continue;
    }
    differences += (count == 1 ? "" : ", ") + line_or_nothing(there, i) +
                   " where this training has " + line_or_nothing(here, i);
  }
  if (count == 0) return {};
  if (count > kShownDifferences) {
    differences += ", and " + std::to_string(count - kShownDifferences) + " more";
  }
  return Error{ErrorCode::kMismatch, path + " belongs to another training: it has " + differences,
               "train the same model with the same optimizer, or choose another folder"};
}

std::string bytes_of(const std::vector<NamedTensor>& tensors) {
  std::string all;
  for (const NamedTensor& named : tensors) {
    if (!named.tensor.defined()) continue;
    const torch::Tensor bytes = named.tensor.detach().cpu().contiguous();
    all.append(static_cast<const char*>(bytes.data_ptr()), bytes.nbytes());
  }
  return all;
}

std::size_t length_of(const std::vector<NamedTensor>& tensors) {
  std::size_t length = 0;
  for (const NamedTensor& named : tensors) {
    if (named.tensor.defined()) length += named.tensor.nbytes();
  }
  return length;
}

void copy_bytes_into(const std::vector<NamedTensor>& tensors, const std::string& bytes) {
  const torch::NoGradGuard no_grad;
  std::size_t begin = 0;
  for (const NamedTensor& named : tensors) {
    if (!named.tensor.defined()) continue;
    torch::Tensor values = torch::empty(named.tensor.sizes(), named.tensor.scalar_type());
    std::memcpy(values.data_ptr(), bytes.data() + begin, values.nbytes());
    begin += values.nbytes();
    named.tensor.detach().copy_(values);
  }
}

namespace {

// The lines of a checkpoint: progress, optimizer, then one for each tensor. The bytes of the
// tensors follow in the same order, and after them the state of the optimizer.
std::vector<std::string> lines_of(const Progress& progress,
                                  const torch::optim::Optimizer& optimizer,
                                  const std::vector<NamedTensor>& tensors) {
  std::vector<std::string> lines = describe(tensors);
  lines.insert(lines.begin(), {progress_line(progress), "optimizer " + describe(optimizer)});
  return lines;
}

Status write(const std::string& folder, const torch::nn::Module& model,
             const torch::optim::Optimizer& optimizer, const Progress& progress) {
  const std::vector<NamedTensor> tensors = tensors_of(model);
  Result<std::string> optimizer_bytes = bytes_of(optimizer);
  if (!optimizer_bytes) return optimizer_bytes.error();
  CheckpointContent content{lines_of(progress, optimizer, tensors), bytes_of(tensors)};
  content.bytes += *optimizer_bytes;
  return write_checkpoint(folder, content);
}

Status load(const std::string& path, const CheckpointContent& content, torch::nn::Module& model,
            torch::optim::Optimizer& optimizer) {
  const std::vector<NamedTensor> tensors = tensors_of(model);
  // The first line is the progress.
  if (Status same = check_same(path, content.lines, lines_of({}, optimizer, tensors), 1); !same) {
    return same;
  }
  const std::size_t length = length_of(tensors);
  if (length > content.bytes.size()) {
    return Error{ErrorCode::kBadArgument, path + " has fewer bytes than its tensors"};
  }
  // The step that can fail comes first.
  if (Status restored = restore(optimizer, content.bytes.substr(length)); !restored) {
    return restored;
  }
  copy_bytes_into(tensors, content.bytes);
  return {};
}

// Called on rank 0.
Result<std::optional<Progress>> read(const std::string& folder, torch::nn::Module& model,
                                     torch::optim::Optimizer& optimizer) {
  const Result<std::optional<CheckpointContent>> content = read_checkpoint(folder);
  if (!content) return content.error();
  if (!*content) return std::optional<Progress>();
  const std::string path = checkpoint_path(folder);
  const std::vector<std::string>& lines = (*content)->lines;
  const std::optional<Progress> progress =
      lines.empty() ? std::nullopt : progress_of(lines.front());
  if (!progress) return Error{ErrorCode::kBadArgument, path + " has no valid progress"};
  if (Status loaded = load(path, **content, model, optimizer); !loaded) return loaded.error();
  return progress;
}

}  // namespace

Status save(Session& session, const std::string& folder, const torch::nn::Module& model,
            const torch::optim::Optimizer& optimizer, const Progress& progress) {
  Status written;
  if (session.rank() == 0) written = write(folder, model, optimizer, progress);
  return share_status(session, "checkpoint.save", written, 0);
}

Result<std::optional<Progress>> resume(Session& session, const std::string& folder,
                                       torch::nn::Module& model,
                                       torch::optim::Optimizer& optimizer) {
  Result<std::optional<Progress>> found = std::optional<Progress>();
  if (session.rank() == 0) found = read(folder, model, optimizer);
  const Status status = found ? Status() : Status(found.error());
  if (Status shared = share_status(session, "checkpoint.resume", status, 0); !shared) {
    return shared.error();
  }
  const std::string line = *found ? progress_line(**found) : "";
  const Result<std::string> received = broadcast_bytes(session, "checkpoint.progress", line, 0);
  if (!received) return received.error();
  if (received->empty()) return std::optional<Progress>();
  if (Status sent = broadcast_parameters(session, model); !sent) return sent.error();
  if (Status sent = broadcast_optimizer_state(session, optimizer); !sent) return sent.error();
  return progress_of(*received);
}

namespace {

// Of one progress: so the errors of the previous checkpoint remain until the new one is complete.
std::string errors_of_progress(const Progress& progress) {
  return "errors-" + std::to_string(progress.epoch) + "-" + std::to_string(progress.step) + "-" +
         std::to_string(progress.samples) + "-";
}

std::string errors_folder(const std::string& folder, const Progress& progress, int rank) {
  return folder + "/" + errors_of_progress(progress) + std::to_string(rank);
}

// Restored errors begin new buckets, so all ranks restore theirs or none does: otherwise the ranks
// would wait for each other's buckets in the next step.
Status restore_errors_of(Session& session, const std::string& folder, const Progress& progress,
                         DistributedOptimizer& distributed) {
  const std::string own = errors_folder(folder, progress, session.rank());
  const Result<std::optional<CheckpointContent>> content = read_checkpoint(own);
  const Status mine = content ? Status() : Status(content.error());
  if (Status read = first_of(session, "checkpoint.errors.read", mine); !read) return read;
  const Result<std::vector<std::string>> seen =
      gather(session, "checkpoint.errors.seen", *content ? "yes" : "no");
  if (!seen) return seen.error();
  for (std::size_t rank = 1; rank < seen->size(); ++rank) {
    if ((*seen)[rank] == seen->front()) continue;
    return Error{ErrorCode::kMismatch,
                 "only some ranks see their errors of the checkpoint in " + folder +
                     ": rank 0 and rank " + std::to_string(rank) + " differ",
                 "use a folder that all ranks see"};
  }
  if (!*content) return {};
  const Status restored = distributed.restore_errors((*content)->bytes);
  return first_of(session, "checkpoint.errors", restored);
}

}  // namespace

Status save(Session& session, const std::string& folder, const torch::nn::Module& model,
            const torch::optim::Optimizer& optimizer, const DistributedOptimizer& distributed,
            const Progress& progress) {
  Status mine = make_folder(folder);
  if (mine) {
    mine = write_checkpoint(errors_folder(folder, progress, session.rank()),
                            {{progress_line(progress)}, distributed.error_bytes()});
  }
  if (Status written = first_of(session, "checkpoint.errors", mine); !written) return written;
  Status saved;
  if (session.rank() == 0) {
    saved = write(folder, model, optimizer, progress);
    // Before the other ranks receive the status: they may write the errors of the next checkpoint
    // at once.
    if (saved) remove_other_checkpoints(folder, "errors-#-#-#-#", errors_of_progress(progress));
  }
  return share_status(session, "checkpoint.save", saved, 0);
}

Result<std::optional<Progress>> resume(Session& session, const std::string& folder,
                                       torch::nn::Module& model, torch::optim::Optimizer& optimizer,
                                       DistributedOptimizer& distributed) {
  Result<std::optional<Progress>> progress = resume(session, folder, model, optimizer);
  if (!progress || !*progress) return progress;
  const Status restored = restore_errors_of(session, folder, **progress, distributed);
  if (!restored) return restored.error();
  return progress;
}

}  // namespace muster::training
