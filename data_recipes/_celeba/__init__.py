"""What the three CelebA recipes share: the user's files, pictures made from them, and work that can be resumed.

References:
    Deep Learning Face Attributes in the Wild (Liu, Luo, Wang, Tang, ICCV 2015), arXiv:1411.7766
"""
