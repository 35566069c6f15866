#include "compressed_bucket.h"

#include <ATen/CPUGeneratorImpl.h>
#include <openssl/evp.h>

#include <algorithm>
#include <array>
#include <utility>

#include "muster/collective/types.h"

namespace muster::training {

using collective::DataType;
using collective::ReduceOp;
using collective::Reduction;
using collective::Result;
using collective::Session;
using collective::Status;
using collective::Ticket;

FeedbackBucket::FeedbackBucket(std::string name, std::vector<NamedTensor> parameters, ReduceOp op,
                               int ranks)
    : name_(std::move(name)),
      parameters_(std::move(parameters)),
      ranks_(ranks),
      some_rank_has_(parameters_.size()),
      factor_(op == ReduceOp::kSum ? ranks : 1) {}

torch::Tensor FeedbackBucket::gradient_of(std::size_t slot) const {
  const torch::Tensor& gradient = parameters_[slot].tensor.grad();
  if (!gradient.defined()) return {};
  return (gradient.is_sparse() ? gradient.to_dense() : gradient).to(torch::kFloat32);
}

void FeedbackBucket::take_over(std::size_t slot) {
  const torch::NoGradGuard no_grad;
  torch::Tensor& gradient = parameters_[slot].tensor.mutable_grad();
  if (gradient.defined()) gradient = gradient.clone();
}

Status FeedbackBucket::launch(Session& session) {
  const torch::NoGradGuard no_grad;
  const Result<Ticket> ticket = begin(session);
  if (!ticket) return explain(parameters_, ticket.error());
  ticket_ = *ticket;
  phase_ = Phase::kFirst;
  return {};
}

Status FeedbackBucket::wait(Session& session) {
  const Status reduced = session.wait(*std::exchange(ticket_, std::nullopt));
  return reduced ? reduced : explain(parameters_, reduced.error());
}

Status FeedbackBucket::proceed(Session& session, bool waits) {
  if (phase_ != Phase::kFirst || !(waits || session.done(*ticket_))) return {};
  if (Status first = wait(session); !first) return first;
  const torch::NoGradGuard no_grad;
  const Result<Ticket> ticket = go_on(session);
  if (!ticket) return explain(parameters_, ticket.error());
  ticket_ = *ticket;
  phase_ = Phase::kSecond;
  return {};
}

Status FeedbackBucket::finish(Session& session) {
  if (Status proceeded = proceed(session, true); !proceeded) return proceeded;
  if (Status second = wait(session); !second) return second;
  const torch::NoGradGuard no_grad;
  give(end());
  phase_ = Phase::kIdle;
  return {};
}

void FeedbackBucket::abandon(const std::vector<torch::Tensor>& buffers) {
  if (ticket_) new std::vector<torch::Tensor>(buffers);  // never freed
}

void FeedbackBucket::give(const std::vector<torch::Tensor>& averages) {
  for (std::size_t slot = 0; slot < parameters_.size(); ++slot) {
    torch::Tensor& gradient = parameters_[slot].tensor.mutable_grad();
    // Without a gradient on any rank, the errors of earlier ones may still have been sent.
    if (some_rank_has_[slot] == 0 && averages[slot].count_nonzero().item<std::int64_t>() == 0) {
      gradient.reset();
      continue;
    }
    torch::Tensor whole = averages[slot].view(parameters_[slot].tensor.sizes());
    if (factor_ != 1) whole = whole * factor_;
    if (!gradient.defined() || gradient.is_sparse()) {
      gradient = torch::empty_like(parameters_[slot].tensor);
    }
    gradient.copy_(whole);
  }
}

namespace {

// The elements that share a scale. The scales add 0.8 % to the bytes.
constexpr std::int64_t kScaled = 512;

std::int64_t elements_of(const std::vector<NamedTensor>& parameters) {
  std::int64_t sum = 0;
  for (const NamedTensor& parameter : parameters) sum += parameter.tensor.numel();
  return sum;
}

}  // namespace

Int8Bucket::Int8Bucket(std::string name, std::vector<NamedTensor> parameters, ReduceOp op,
                       int ranks)
    : FeedbackBucket(std::move(name), std::move(parameters), op, ranks) {
  const std::int64_t together = kScaled * ranks;
  const std::int64_t scales =
      std::max<std::int64_t>((elements_of(parameters_) + together - 1) / together, 1);
  part_ = scales * kScaled;
  bytes_ =
      part_ + scales * static_cast<std::int64_t>(sizeof(float)) + static_cast<std::int64_t>(size());
  values_ = torch::zeros({ranks * part_});
  error_ = torch::zeros_like(values_);
  error_of_average_ = torch::zeros({part_});
  sent_ = torch::zeros({ranks, bytes_}, torch::kUInt8);
  received_ = torch::zeros_like(sent_);
}

Int8Bucket::~Int8Bucket() {
  abandon({sent_, received_});
}

std::vector<NamedTensor> Int8Bucket::kept() const {
  // By the first parameter, since the buckets of every run have numbers of their own.
  const std::string& first = parameters_.front().name;
  return {{first + ".error", error_}, {first + ".error_of_average", error_of_average_}};
}

FeedbackBucket::Begun Int8Bucket::begin(Session& session) {
  values_.zero_();
  std::int64_t at = 0;
  const auto slots = static_cast<std::int64_t>(size());
  torch::Tensor marks = torch::zeros({slots}, torch::kUInt8);
  for (std::size_t slot = 0; slot < size(); ++slot) {
    const torch::Tensor gradient = gradient_of(slot);
    if (gradient.defined()) {
      marks[static_cast<std::int64_t>(slot)] = 1;
      values_.narrow(0, at, length_of(slot)).view(gradient.sizes()).copy_(gradient);
    }
    at += length_of(slot);
  }
  values_.add_(error_);
  pack(values_, error_, sent_);
  sent_.narrow(1, bytes_ - slots, slots).copy_(marks);
  const std::vector<std::uint64_t> lengths(static_cast<std::size_t>(ranks_),
                                           static_cast<std::uint64_t>(bytes_));
  return session.all_to_all(
      name_ + ".int8", sent_.data_ptr(), lengths, [this](auto) { return received_.data_ptr(); },
      {static_cast<const std::byte*>(received_.data_ptr()), received_.nbytes()});
}

FeedbackBucket::Begun Int8Bucket::go_on(Session& session) {
  torch::Tensor average = torch::zeros({part_});
  std::fill(some_rank_has_.begin(), some_rank_has_.end(), 0);
  for (int rank = 0; rank < ranks_; ++rank) {
    const torch::Tensor packed = received_[rank];
    average += unpacked(packed);
    const auto* const marks =
        packed.data_ptr<std::uint8_t>() + bytes_ - static_cast<std::int64_t>(size());
    for (std::size_t slot = 0; slot < size(); ++slot) {
      if (marks[slot] != 0) some_rank_has_[slot] = 1;
    }
  }
  average.div_(ranks_).add_(error_of_average_);
  const torch::Tensor own = sent_[0];
  pack(average, error_of_average_, own);
  return session.all_gather(
      name_ + ".average", own.data_ptr(), static_cast<std::uint64_t>(bytes_),
      [this](auto) { return received_.data_ptr(); },
      {static_cast<const std::byte*>(received_.data_ptr()), received_.nbytes()});
}

std::vector<torch::Tensor> Int8Bucket::end() {
  for (int rank = 0; rank < ranks_; ++rank) {
    values_.narrow(0, rank * part_, part_).copy_(unpacked(received_[rank]));
  }
  std::vector<torch::Tensor> averages;
  std::int64_t at = 0;
  for (std::size_t slot = 0; slot < size(); ++slot) {
    averages.push_back(values_.narrow(0, at, length_of(slot)));
    at += length_of(slot);
  }
  return averages;
}

// Writes the values of one or more parts into `packed`, and what that loses into `error`.
void Int8Bucket::pack(const torch::Tensor& values, torch::Tensor& error,
                      torch::Tensor packed) const {
  const torch::Tensor scaled = values.view({-1, kScaled});
  const torch::Tensor scales = scaled.abs().amax(1, true).div_(127);
  // A row of zeros has the scale 0, and a NaN or an infinity makes its row NaN.
  torch::Tensor rounded = (scaled / scales.where(scales > 0, torch::ones_like(scales))).round_();
  torch::sub_out(error, values, (rounded * scales).view(-1));
  error.nan_to_num_(0.0, 0.0, 0.0);
  packed = packed.view({-1, bytes_});
  const std::int64_t parts = packed.size(0);
  const torch::Tensor elements =
      rounded.nan_to_num_(0.0).clamp_(-127, 127).to(torch::kInt8).view({parts, -1});
  const std::int64_t scale_bytes = part_ / kScaled * static_cast<std::int64_t>(sizeof(float));
  packed.narrow(1, 0, part_).copy_(elements.view(torch::kUInt8));
  packed.narrow(1, part_, scale_bytes)
      .copy_(scales.reshape({parts, -1}).contiguous().view(torch::kUInt8));
}

torch::Tensor Int8Bucket::unpacked(const torch::Tensor& packed) const {
  const std::int64_t scale_bytes = part_ / kScaled * static_cast<std::int64_t>(sizeof(float));
  const torch::Tensor elements =
      packed.narrow(0, 0, part_).view(torch::kInt8).to(torch::kFloat32).view({-1, kScaled});
  const torch::Tensor scales =
      packed.narrow(0, part_, scale_bytes).clone().view(torch::kFloat32).view({-1, 1});
  return (elements * scales).view(-1);
}

// PowerSGD.
namespace {

// Gram-Schmidt, in place, by columns. A column that depends on the columns before it becomes 0: what
// rounding has left of it would point in their direction.
void orthogonalize(const torch::Tensor& matrix) {
  const torch::Tensor limits = matrix.norm(2, 0).mul_(1e-5);
  const std::int64_t columns = matrix.size(1);
  for (std::int64_t column = 0; column < columns; ++column) {
    torch::Tensor current = matrix.narrow(1, column, 1);
    const torch::Tensor length = current.norm();
    current.mul_(torch::where(length <= limits[column], torch::zeros_like(length), 1.0 / length));
    if (column + 1 == columns) break;
    torch::Tensor rest = matrix.narrow(1, column + 1, columns - column - 1);
    rest.sub_(current.matmul(current.t().matmul(rest)));
  }
}

}  // namespace

std::uint64_t seed_of(const std::string& parameter) {
  std::array<unsigned char, 32> digest = {};
  EVP_Digest(parameter.data(), parameter.size(), digest.data(), nullptr, EVP_sha256(), nullptr);
  constexpr std::size_t kSeedBytes = 7;
  std::uint64_t seed = 0;
  for (std::size_t i = 0; i < kSeedBytes; ++i) seed = seed << 8U | digest[i];
  return seed;
}

PowerSgdBucket::PowerSgdBucket(std::string name, std::vector<NamedTensor> parameters, ReduceOp op,
                               int ranks, int rank)
    : FeedbackBucket(std::move(name), std::move(parameters), op, ranks) {
  std::int64_t first = static_cast<std::int64_t>(size());
  std::int64_t second = 0;
  for (std::size_t slot = 0; slot < size(); ++slot) {
    const torch::Tensor& parameter = parameters_[slot].tensor;
    const std::int64_t elements = parameter.numel();
    const std::int64_t rows = parameter.dim() < 2 || elements == 0 ? 0 : parameter.size(0);
    const std::int64_t columns = rows == 0 ? 0 : elements / rows;
    const std::int64_t used = std::min<std::int64_t>({rank, rows, columns});
    // The factors must be smaller than the gradient.
    if (rows == 0 || used * (rows + columns) >= elements) {
      unchanged_.emplace_back(slot, torch::Tensor());
      first += elements;
      continue;
    }
    first += rows * used;
    second += columns * used;
    matrices_.push_back({.slot = slot, .rows = rows, .columns = columns, .rank = used});
  }
  first_ = torch::zeros({first});
  second_ = torch::zeros({second});
  std::int64_t first_at = 0;
  std::int64_t second_at = 0;
  const auto take = [](const torch::Tensor& from, std::int64_t& at, std::int64_t count) {
    at += count;
    return from.narrow(0, at - count, count);
  };
  for (auto& [slot, part] : unchanged_) part = take(first_, first_at, length_of(slot));
  for (Matrix& matrix : matrices_) {
    matrix.p = take(first_, first_at, matrix.rows * matrix.rank).view({matrix.rows, matrix.rank});
    matrix.q =
        take(second_, second_at, matrix.columns * matrix.rank).view({matrix.columns, matrix.rank});
    matrix.error = torch::zeros({matrix.rows, matrix.columns});
    matrix.random =
        torch::make_generator<torch::CPUGeneratorImpl>(seed_of(parameters_[matrix.slot].name));
    matrix.random_state = matrix.random.get_state();
  }
  marks_ = take(first_, first_at, static_cast<std::int64_t>(size()));
}

PowerSgdBucket::~PowerSgdBucket() {
  abandon({first_, second_});
}

std::vector<NamedTensor> PowerSgdBucket::kept() const {
  std::vector<NamedTensor> kept;
  for (const Matrix& matrix : matrices_) {
    const std::string& parameter = parameters_[matrix.slot].name;
    kept.push_back({parameter + ".error", matrix.error});
    kept.push_back({parameter + ".q", matrix.q});
    kept.push_back({parameter + ".random", matrix.random_state});
  }
  return kept;
}

void PowerSgdBucket::restored() {
  for (Matrix& matrix : matrices_) matrix.random.set_state(matrix.random_state.clone());
}

// Orthogonalizes q. Draws columns anew that are 0, as after a gradient of lower rank, or not finite:
// they would stay so. All ranks have the same q, and draw the same.
void PowerSgdBucket::prepare_q(Matrix& matrix) {
  const torch::Tensor largest = matrix.q.abs().amax(0);
  const torch::Tensor is_usable = (largest > 0).logical_and(torch::isfinite(largest));
  if (!is_usable.all().item<bool>()) {
    const torch::Tensor drawn = torch::randn(matrix.q.sizes(), matrix.random);
    matrix.q.copy_(torch::where(is_usable, matrix.q, drawn));
    matrix.random_state.copy_(matrix.random.get_state());
  }
  orthogonalize(matrix.q);
}

FeedbackBucket::Begun PowerSgdBucket::begin(Session& session) {
  marks_.zero_();
  const auto gradient_with_mark = [&](std::size_t slot) {
    torch::Tensor gradient = gradient_of(slot);
    if (gradient.defined()) marks_[static_cast<std::int64_t>(slot)] = 1;
    return gradient;
  };
  for (const auto& [slot, part] : unchanged_) {
    const torch::Tensor gradient = gradient_with_mark(slot);
    if (gradient.defined()) {
      part.view(gradient.sizes()).copy_(gradient);
    } else {
      part.zero_();
    }
  }
  for (Matrix& matrix : matrices_) {
    const torch::Tensor gradient = gradient_with_mark(matrix.slot);
    matrix.values = gradient.defined()
                        ? matrix.error + gradient.reshape({matrix.rows, matrix.columns})
                        : matrix.error.clone();
    prepare_q(matrix);
    torch::matmul_out(matrix.p, matrix.values, matrix.q);
  }
  return average(session, ".p", first_);
}

FeedbackBucket::Begun PowerSgdBucket::average(Session& session, const char* part,
                                              const torch::Tensor& values) {
  return session.all_reduce(name_ + part, values.data_ptr(), values.data_ptr(),
                            static_cast<std::uint64_t>(values.numel()), DataType::kFloat32,
                            Reduction(ReduceOp::kAverage));
}

FeedbackBucket::Begun PowerSgdBucket::go_on(Session& session) {
  const auto marks = marks_.accessor<float, 1>();
  for (std::size_t slot = 0; slot < size(); ++slot) {
    some_rank_has_[slot] = marks[static_cast<std::int64_t>(slot)] > 0 ? 1 : 0;
  }
  for (Matrix& matrix : matrices_) {
    orthogonalize(matrix.p);
    torch::matmul_out(matrix.q, matrix.values.t(), matrix.p);
  }
  return average(session, ".q", second_);
}

std::vector<torch::Tensor> PowerSgdBucket::end() {
  std::vector<torch::Tensor> averages(size());
  for (const auto& [slot, part] : unchanged_) averages[slot] = part;
  for (Matrix& matrix : matrices_) {
    torch::Tensor& sent = averages[matrix.slot];
    sent = matrix.p.matmul(matrix.q.t());
    torch::sub_out(matrix.error, matrix.values, sent);
    matrix.error.nan_to_num_(0.0, 0.0, 0.0);
    matrix.values.reset();
  }
  return averages;
}

}  // namespace muster::training
