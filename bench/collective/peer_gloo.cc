// Gloo over its TCP transport. The ranks connect to each other through files.
//
//   --algorithm=ring|halving   its segmented ring (which torch.distributed uses as well), or its
//                              recursive halving and doubling, which works in place only: out of
//                              place it is preceded by a copy, as in a program that needs one
//   --address=A                the address of this rank's interface
//   --store=FOLDER             an empty folder
#include <gloo/allreduce.h>
#include <gloo/allreduce_halving_doubling.h>
#include <gloo/math.h>
#include <gloo/rendezvous/context.h>
#include <gloo/rendezvous/file_store.h>
#include <gloo/transport/tcp/device.h>
#include <gloo/types.h>

#include <cstring>
#include <exception>
#include <memory>

#include "core.h"

namespace {

using ContextPointer = std::shared_ptr<gloo::rendezvous::Context>;

ContextPointer connect(const bench::Arguments& arguments, const bench::Plan& plan) {
  gloo::transport::tcp::attr where;
  where.hostname = arguments.text("address", "127.0.0.1");
  auto device = gloo::transport::tcp::CreateDevice(where);
  auto context = std::make_shared<gloo::rendezvous::Context>(plan.rank, plan.ranks);
  gloo::rendezvous::FileStore store(arguments.text("store", ""));
  context->connectFullMesh(store, device);
  return context;
}

template <typename T>
bench::Subject::Call ring(const ContextPointer& context, const void* in, void* out,
                          std::uint64_t bytes) {
  auto options = std::make_shared<gloo::AllreduceOptions>(context);
  const std::size_t count = bytes / sizeof(T);
  // Without an input Gloo uses the output as input. It never writes to an input.
  if (in != out) options->setInput(static_cast<T*>(const_cast<void*>(in)), count);
  options->setOutput(static_cast<T*>(out), count);
  options->setAlgorithm(gloo::AllreduceOptions::Algorithm::RING);
  options->setReduceFunction(
      [](void* sum, const void* a, const void* b, std::size_t n) { gloo::sum<T>(sum, a, b, n); });
  return [options] { gloo::allreduce(*options); };
}

template <typename T>
bench::Subject::Call halving(const ContextPointer& context, const void* in, void* out,
                             std::uint64_t bytes) {
  auto algorithm = std::make_shared<gloo::AllreduceHalvingDoubling<T>>(
      context, std::vector<T*>{static_cast<T*>(out)}, static_cast<int>(bytes / sizeof(T)));
  return [=] {
    if (in != out) std::memcpy(out, in, bytes);
    algorithm->run();
  };
}

template <typename T>
bench::Subject subject_of(const ContextPointer& context, const std::string& algorithm) {
  bench::Subject subject;
  subject.prepare = [=](const void* in, void* out, std::uint64_t bytes) {
    return algorithm == "ring" ? ring<T>(context, in, out, bytes)
                               : halving<T>(context, in, out, bytes);
  };
  return subject;
}

}  // namespace

int main(int argc, char** argv) {
  const bench::Arguments arguments(argc, argv);
  const bench::Plan plan = bench::plan_from(arguments);
  bench::Page page(plan.page, plan.rank, plan.ranks, plan.cores);
  const std::string algorithm = arguments.text("algorithm", "ring");
  try {
    const ContextPointer context = connect(arguments, plan);
    if (plan.type == bench::Type::kBFloat16) bench::fail("Gloo has no bfloat16");
    bench::measure(plan, page,
                   plan.type == bench::Type::kFloat32
                       ? subject_of<float>(context, algorithm)
                       : subject_of<gloo::float16>(context, algorithm));
    page.meet();
  } catch (const std::exception& error) {
    bench::fail(error.what());
  }
  return 0;
}
