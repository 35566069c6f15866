"""horovod.tensorflow.data, which distributes the batches of a tf.data service among ranks, has no counterpart here."""

raise ImportError("muster has no tensorflow.data: start TensorFlow's own service (tf.data.experimental.service."
                  "DispatchServer and WorkerServer), and read from it with tf.data.experimental.service.distribute()")
