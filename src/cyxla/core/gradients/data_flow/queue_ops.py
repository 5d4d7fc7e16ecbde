"""Queues and barriers, which have no gradients."""

from cyxla.core.framework.gradient import no_gradient

no_gradient(
    "FIFOQueue", "FIFOQueueV2", "FakeQueue", "PaddingFIFOQueue", "PaddingFIFOQueueV2", "PriorityQueue",
    "PriorityQueueV2", "RandomShuffleQueue", "RandomShuffleQueueV2",
)  # fmt: skip
no_gradient(
    "QueueClose", "QueueCloseV2", "QueueDequeue", "QueueDequeueMany", "QueueDequeueManyV2", "QueueDequeueUpTo",
    "QueueDequeueUpToV2", "QueueDequeueV2", "QueueEnqueue", "QueueEnqueueMany", "QueueEnqueueManyV2", "QueueEnqueueV2",
    "QueueIsClosed", "QueueIsClosedV2", "QueueSize", "QueueSizeV2",
)  # fmt: skip
no_gradient(
    "Barrier", "BarrierClose", "BarrierIncompleteSize", "BarrierInsertMany", "BarrierReadySize", "BarrierTakeMany",
)  # fmt: skip
