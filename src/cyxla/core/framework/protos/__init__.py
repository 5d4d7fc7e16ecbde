"""Messages of TensorFlow, read and written."""
